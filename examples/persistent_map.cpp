// A hash map that outlives its program, with versions: a command-line key-value store.
//
//   persistent_map STORE set KEY VALUE
//   persistent_map STORE get KEY [VERSION]        exit status 1: there is no such key
//   persistent_map STORE del KEY                  exit status 1: there was no such key
//   persistent_map STORE list [VERSION]
//   persistent_map STORE snapshot NAME            keeps the map as it is now
//
// VERSION is a snapshot; without it, the command uses the current map. Readers take no lock and run
// concurrently with a writer.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

namespace {

using Map = vellum::unordered_map<vellum::string, vellum::string>;
using Words = std::vector<std::string>;

constexpr char kBranch[] = "main";
constexpr char kRoot[] = "map";

int usage() {
  std::fprintf(stderr,
               "usage: persistent_map STORE set KEY VALUE | get KEY [VERSION] | del KEY |\n"
               "                            list [VERSION] | snapshot NAME\n");
  return 2;
}

int write(const std::string& path, const Words& words) {
  auto store = vellum::Store::open_or_create(path);
  auto region = store.open_or_create_region(kBranch, 1 << 20);  // grows by itself
  vellum::Heap heap(region);
  Map& map = heap.root<Map>(kRoot);

  int status = 0;
  if (words[0] == "set") {
    map[words[1]] = words[2];
  } else if (words[0] == "del") {
    status = map.erase(words[1]) == 1 ? 0 : 1;
  } else {
    region.snapshot(words[1]);
    return 0;
  }
  region.commit();
  return status;
}

int read(const std::string& path, const Words& words, const std::string& version) {
  auto store = vellum::Store::open(path);
  const auto heap = vellum::Heap::open_read_only(store.open_version(version));
  const Map* map = heap.find<Map>(kRoot);
  if (map == nullptr) {
    return 1;
  }
  if (words[0] == "list") {
    for (const auto& [key, value] : *map) {
      std::printf("%s\t%s\n", key.c_str(), value.c_str());
    }
    return 0;
  }
  const auto found = map->find(words[1]);
  if (found == map->end()) {
    return 1;
  }
  std::printf("%s\n", found->second.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    return usage();
  }
  const Words words(argv + 2, argv + argc);
  const auto is = [&](const char* command, std::size_t arguments) {
    return words[0] == command && words.size() == 1 + arguments;
  };
  if (is("set", 2) || is("del", 1) || is("snapshot", 1)) {
    return write(argv[1], words);
  }
  if (is("get", 1) || is("list", 0)) {
    return read(argv[1], words, kBranch);
  }
  if (is("get", 2) || is("list", 1)) {
    return read(argv[1], words, words.back());
  }
  return usage();
} catch (const std::exception& error) {
  std::fprintf(stderr, "persistent_map: %s\n", error.what());
  return 3;
}
