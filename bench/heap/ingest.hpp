// bench/heap/ingest.hpp: inserts edges into graphs, one graph for each thread.
#pragma once

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "edge_list.hpp"
#include "lib/report.hpp"

namespace bench {

struct Link {
  NodeId target;
  std::int64_t time;
};

// The edges of each thread: those of its sources, in their order.
using Shares = std::vector<std::vector<Edge>>;

inline Shares shares_of(const std::vector<Edge>& edges, std::size_t threads) {
  Shares shares(threads);
  for (const Edge& edge : edges) shares[edge.source % threads].push_back(edge);
  return shares;
}

// Seconds until all edges are inserted. `graphs` has a graph for each share.
template <typename Graph>
double ingest(const std::vector<Graph*>& graphs, const Shares& shares) {
  std::latch ready(static_cast<std::ptrdiff_t>(shares.size() + 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    threads.emplace_back([&ready, &graph = *graphs[i], &share = shares[i]] {
      ready.arrive_and_wait();
      for (const Edge& edge : share) graph[edge.source].push_back({edge.target, edge.time});
    });
  }
  const auto start = Clock::now();
  ready.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  return seconds_since(start);
}

// The same containers on Metall's allocator, its files in `directory`; nothing is flushed.
double ingest_into_metall(const std::string& directory, const Shares& shares);

}  // namespace bench
