// A Metall program on Vellum: an adjacency list that grows, with a version after each batch.
//
//   metall_graph DIR add EDGES      lines "source target" from standard input; then a commit
//   metall_graph DIR snapshot NAME  keeps the graph as it is now, as DIR@NAME
//   metall_graph DIR[@NAME] degree VERTEX
//
// Only the first alias differs from a program for plain Metall. After a kill at any time the graph
// is that of the last commit: try it during `add`, which commits every 100,000 edges.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <vellum/metall.hpp>

#include <metall/container/unordered_map.hpp>
#include <metall/container/vector.hpp>

namespace {

using Manager = vellum::metall_manager;

template <typename T>
using Allocator = Manager::allocator_type<T>;
using Vertex = std::uint64_t;
using Neighbours = metall::container::vector<Vertex, Allocator<Vertex>>;
using Graph = metall::container::unordered_map<
    Vertex, Neighbours, std::hash<Vertex>, std::equal_to<Vertex>,
    metall::container::scoped_allocator_adaptor<Allocator<std::pair<const Vertex, Neighbours>>>>;

constexpr char kGraph[] = "graph";
constexpr std::uint64_t kEdgesPerCommit = 100'000;

int fail(const std::string& what) {
  const std::string& why = vellum::metall_last_error();
  std::fprintf(stderr, "%s%s%s\n", what.c_str(), why.empty() ? "" : ": ", why.c_str());
  return 1;
}

int add(const std::string& path) {
  const bool is_new = !Manager::consistent(path);
  auto manager = is_new ? Manager(metall::create_only, path) : Manager(metall::open_only, path);
  if (!manager.check_sanity()) return fail("cannot open " + path);
  auto* const graph = manager.find_or_construct<Graph>(kGraph)(manager.get_allocator<>());
  Vertex source, target;
  std::uint64_t edges = 0;
  while (std::cin >> source >> target) {
    (*graph)[source].push_back(target);
    if (++edges % kEdgesPerCommit == 0) manager.flush();
  }
  manager.flush();
  std::printf("%ju edges added; %zu vertices have neighbours\n", std::uintmax_t{edges},
              graph->size());
  return 0;
}

int snapshot(const std::string& path, const std::string& name) {
  Manager manager(metall::open_only, path);
  if (!manager.check_sanity()) return fail("cannot open " + path);
  return manager.snapshot(path + "@" + name) ? 0 : fail("no snapshot");
}

int degree(const std::string& path, Vertex vertex) {
  const Manager manager(metall::open_read_only, path);
  if (!manager.check_sanity()) return fail("cannot open " + path);
  const auto* const graph = manager.find<Graph>(kGraph).first;
  const auto found = graph->find(vertex);
  std::printf("%zu\n", found == graph->end() ? 0 : found->second.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[2] : "";
  if (argc == 3 && command == "add") return add(argv[1]);
  if (argc == 4 && command == "snapshot") return snapshot(argv[1], argv[3]);
  if (argc == 4 && command == "degree") return degree(argv[1], std::strtoull(argv[3], nullptr, 10));
  std::fprintf(stderr,
               "usage: metall_graph DIR add < EDGES | DIR snapshot NAME | DIR[@NAME] degree V\n");
  return 2;
}
