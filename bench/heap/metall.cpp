// bench/heap/metall.cpp: Metall's allocator, the peer.
#include <filesystem>
#include <metall/container/scoped_allocator.hpp>
#include <metall/container/unordered_map.hpp>
#include <metall/container/vector.hpp>
#include <metall/metall.hpp>

#include "ingest.hpp"

namespace bench {
namespace {

template <typename T>
using Allocator = metall::manager::allocator_type<T>;
using Links = metall::container::vector<Link>;
using Graph = metall::container::unordered_map<
    NodeId, Links, std::hash<NodeId>, std::equal_to<>,
    metall::container::scoped_allocator_adaptor<Allocator<std::pair<const NodeId, Links>>>>;

}  // namespace

double ingest_into_metall(const std::string& directory, const Shares& shares) {
  double seconds = 0;
  {
    metall::manager manager(metall::create_only, directory, std::size_t{8} << 30);
    std::vector<Graph*> graphs;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::string name = "graph" + std::to_string(i);
      graphs.push_back(manager.construct<Graph>(name.c_str())(manager.get_allocator<>()));
    }
    seconds = ingest(graphs, shares);
  }
  std::filesystem::remove_all(directory);
  return seconds;
}

}  // namespace bench
