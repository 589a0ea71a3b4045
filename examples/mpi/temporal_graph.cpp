// A graph that grows with time, over the ranks of MPI, with a global version for each year or
// month.
//
//   mpirun -n 4 mpi_temporal_graph DIR [EDGES] [--month]
//
// DIR gets a store for each rank and the directory of records. EDGES is an edge list with times, as
// for the example temporal_graph; without it, the program generates an R-MAT graph. A node and its
// edges belong to the rank given by its number. Killed at any time and started again, the program
// continues after its last period. At the end it searches the graph breadth-first as it was at each
// period, from the node that then had the most edges; the ranks search together, each in its part
// of the old version. The number of nodes reached, and their distances in sum, are compared with a
// search by one process in plain memory.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
#include <vellum/heap.hpp>
#include <vellum/mpi.hpp>

#include "../edge_list.hpp"

namespace {

using Graph = vellum::unordered_map<NodeId, vellum::vector<NodeId>>;  // targets by source

int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int all_ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

int owner_of(NodeId node) { return static_cast<int>(node % static_cast<NodeId>(all_ranks())); }

// Sends each rank its nodes, and returns the received ones.
std::vector<NodeId> exchange(const std::vector<std::vector<NodeId>>& outgoing) {
  const auto ranks = static_cast<std::size_t>(all_ranks());
  std::vector<int> send_counts(ranks), send_starts(ranks), counts(ranks), starts(ranks);
  std::vector<NodeId> sent;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    send_counts[rank] = static_cast<int>(outgoing[rank].size());
    send_starts[rank] = static_cast<int>(sent.size());
    sent.insert(sent.end(), outgoing[rank].begin(), outgoing[rank].end());
  }
  MPI_Alltoall(send_counts.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (std::size_t rank = 1; rank < ranks; ++rank)
    starts[rank] = starts[rank - 1] + counts[rank - 1];
  std::vector<NodeId> received(static_cast<std::size_t>(starts.back() + counts.back()));
  MPI_Alltoallv(sent.data(), send_counts.data(), send_starts.data(), MPI_UINT64_T, received.data(),
                counts.data(), starts.data(), MPI_UINT64_T, MPI_COMM_WORLD);
  return received;
}

std::uint64_t sum_over_ranks(std::uint64_t mine) {
  std::uint64_t sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

// The node with the most edges on any rank, the smallest of several.
NodeId top_node(const Graph& graph) {
  std::uint64_t best[2] = {0, 0};  // edges, node
  for (const auto& [node, targets] : graph) {
    if (targets.size() > best[0] || (targets.size() == best[0] && node < best[1])) {
      best[0] = targets.size();
      best[1] = node;
    }
  }
  std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(all_ranks()));
  MPI_Allgather(best, 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    if (all[i] > best[0] || (all[i] == best[0] && all[i + 1] < best[1])) {
      best[0] = all[i];
      best[1] = all[i + 1];
    }
  }
  return best[1];
}

struct Reached {
  std::uint64_t nodes = 0, distances = 0;  // in sum
  bool operator==(const Reached& other) const {
    return nodes == other.nodes && distances == other.distances;
  }
};

// The nodes reachable from a node, over all ranks: breadth-first, a distance at a time.
Reached reach(const Graph& graph, NodeId start) {
  std::unordered_set<NodeId> seen;  // of this rank's nodes
  std::vector<NodeId> frontier;
  if (owner_of(start) == my_rank()) {
    seen.insert(start);
    frontier.push_back(start);
  }
  Reached reached;
  for (std::uint64_t distance = 0;; ++distance) {
    const std::uint64_t nodes = sum_over_ranks(frontier.size());
    if (nodes == 0) return reached;
    reached.nodes += nodes;
    reached.distances += nodes * distance;
    std::vector<std::vector<NodeId>> outgoing(static_cast<std::size_t>(all_ranks()));
    for (const NodeId node : frontier) {
      const auto found = graph.find(node);
      if (found == graph.end()) continue;
      for (const NodeId target : found->second) {
        outgoing[static_cast<std::size_t>(owner_of(target))].push_back(target);
      }
    }
    frontier.clear();
    for (const NodeId node : exchange(outgoing)) {
      if (seen.insert(node).second) frontier.push_back(node);
    }
  }
}

// The same in plain memory, of the edges up to a place in the list.
Reached reach_in_memory(const std::vector<Edge>& edges, std::size_t end, NodeId start) {
  std::unordered_map<NodeId, std::vector<NodeId>> graph;
  for (std::size_t i = 0; i < end; ++i) graph[edges[i].source].push_back(edges[i].target);
  std::unordered_map<NodeId, std::uint64_t> distances{{start, 0}};
  std::queue<NodeId> next({start});
  Reached reached;
  for (; !next.empty(); next.pop()) {
    const std::uint64_t distance = distances[next.front()];
    ++reached.nodes;
    reached.distances += distance;
    const auto found = graph.find(next.front());
    if (found == graph.end()) continue;
    for (const NodeId target : found->second) {
      if (distances.emplace(target, distance + 1).second) next.push(target);
    }
  }
  return reached;
}

struct Period {
  std::string name;
  std::size_t end;  // after its last edge
};

std::vector<Period> periods_of(const std::vector<Edge>& edges, bool monthly) {
  std::vector<Period> periods;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    std::string name = period_of(edges[i].time, monthly);
    if (periods.empty() || periods.back().name != name) periods.push_back({std::move(name), 0});
    periods.back().end = i + 1;
  }
  return periods;
}

// Adds this rank's edges, period by period, after the existing ones.
void ingest(vellum::Group& group, const std::vector<Edge>& edges,
            const std::vector<Period>& periods) {
  vellum::Heap heap(group.region());
  Graph& graph = heap.root<Graph>("graph");
  std::uint64_t& done = heap.root<std::uint64_t>("edges");  // of all ranks
  for (const Period& period : periods) {
    if (done >= period.end) continue;
    const auto start = Clock::now();
    for (std::size_t i = done; i < period.end; ++i) {
      if (owner_of(edges[i].source) == my_rank()) {
        graph[edges[i].source].push_back(edges[i].target);
      }
    }
    const std::uint64_t added = period.end - done;
    done = period.end;
    const double ingest_seconds = seconds_since(start);
    const vellum::GroupReport report = group.snapshot(period.name);
    if (my_rank() == 0) {
      std::printf(
          "%-8s %9lu edges in %.3f s, version %lu: %.1f ms on the slowest rank and %.2f ms "
          "together, %.2f MiB\n",
          period.name.c_str(), static_cast<unsigned long>(added), ingest_seconds,
          static_cast<unsigned long>(report.number),
          static_cast<double>(report.slowest_time.count()) / 1e6,
          static_cast<double>(report.coordination_time.count()) / 1e6,
          static_cast<double>(report.bytes_written) / 1048576);
      std::fflush(stdout);
    }
  }
}

void search(vellum::Group& group, const std::vector<Edge>& edges, const Period& period) {
  const vellum::GroupVersion version = group.open_version(period.name);
  const auto heap =
      vellum::Heap::open_read_only(version.open_partition(static_cast<std::uint32_t>(my_rank())));
  const Graph& graph = heap.root<Graph>("graph");
  const NodeId top = top_node(graph);
  const auto start = Clock::now();
  const Reached reached = reach(graph, top);
  if (my_rank() != 0) return;
  std::printf("as of %-8s from node %lu: %lu nodes, %.2f steps on average, in %.3f s\n",
              period.name.c_str(), static_cast<unsigned long>(top),
              static_cast<unsigned long>(reached.nodes),
              static_cast<double>(reached.distances) / static_cast<double>(reached.nodes),
              seconds_since(start));
  if (!(reached == reach_in_memory(edges, period.end, top))) {
    throw std::runtime_error("the search in plain memory reaches other nodes");
  }
}

void run(int argc, char** argv) {
  std::string directory, file;
  bool monthly = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--month") == 0) {
      monthly = true;
    } else {
      (directory.empty() ? directory : file) = argv[i];
    }
  }
  if (directory.empty()) throw std::runtime_error("mpi_temporal_graph DIR [EDGES] [--month]");
  const std::vector<Edge> edges =
      file.empty() ? make_up_edges(14, 16, 1) : read_edges_by_time(file);
  const std::vector<Period> periods = periods_of(edges, monthly);

  vellum::GroupOptions options;
  options.store = directory + "/store-{}";
  options.region_bytes = 1 << 20;  // the heap grows it
  vellum::Group group = vellum::Group::open(MPI_COMM_WORLD, directory + "/records", options);
  if (group.partitions() != static_cast<std::uint32_t>(all_ranks())) {
    throw std::runtime_error("the graph lies on " + std::to_string(group.partitions()) + " ranks");
  }
  ingest(group, edges, periods);
  for (const Period& period : periods) search(group, edges, period);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    vellum::abort_job(MPI_COMM_WORLD, error.what());
  }
  MPI_Finalize();
  return 0;
}
