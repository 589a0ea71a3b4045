// The structures of bench/fams in a plain file that mmap() maps, compiled by vellum-clang++: this
// file does not use Vellum.
//   structures list|btree|hash FILE OPERATIONS COPIES   calls msync() after each operation, then
//                                 copies the state of a crash: COPIES/N and its journal
//   structures list|btree|hash FILE check               prints how many operations FILE contains,
//                                 and whether its content is theirs
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <fams/arena.hpp>
#include <fams/btree.hpp>
#include <fams/hash.hpp>
#include <fams/list.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

namespace {

using namespace fams;

struct NoReports {
  static void stores(const void*, std::size_t) {}
};
using Memory = Arena<NoReports>;

constexpr std::size_t kFileBytes = 1 << 20;
constexpr Key kKeys = 40;

// Operation number n: keys are in random order and repeat, then with another value.
struct Operation {
  explicit Operation(std::uint64_t n) : key(n * 2654435761 % kKeys) {
    std::memset(value.bytes, static_cast<int>(n), sizeof value.bytes);
  }
  Key key;
  Value value;
};

// A list has a key once for each insertion; the other structures have it once.
struct Model {
  void apply(std::uint64_t n) {
    const Operation operation(n);
    if (is_list) {
      values.emplace(n, operation.value);
    } else {
      values[operation.key] = operation.value;
    }
  }
  bool is_list;
  std::map<Key, Value> values;
};

class File {
 public:
  File(const std::string& shape, const char* path) : is_list_(shape == "list") {
    const int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, kFileBytes) != 0) std::exit(3);
    base_ =
        static_cast<char*>(mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    if (base_ == MAP_FAILED) std::exit(3);
    Memory memory(base_ + 4096, kFileBytes - 4096);
    const Size size{Shape::list, kKeys, 0};
    if (shape == "list") structure_ = make<List<Memory>>(memory, size);
    if (shape == "btree") structure_ = make<Btree<Memory>>(memory, size);
    if (shape == "hash") structure_ = make<Hash<Memory>>(memory, size);
    if (structure_ == nullptr) std::exit(2);
  }

  std::uint64_t& done() { return *reinterpret_cast<std::uint64_t*>(base_); }
  void apply(std::uint64_t n) {
    const Operation operation(n);
    if (is_list_ || !structure_->update(operation.key, operation.value))
      structure_->insert(is_list_ ? n : operation.key, operation.value);
    done() = n;
  }
  bool sync() { return msync(base_, kFileBytes, MS_SYNC) == 0; }
  bool is_what_was_done() {
    Model model{is_list_, {}};
    for (std::uint64_t n = 1; n <= done(); ++n) model.apply(n);
    if (structure_->count() != model.values.size()) return false;
    for (const auto& [key, value] : model.values) {
      Value found;
      if (!structure_->read(key, found) || std::memcmp(&found, &value, sizeof value) != 0)
        return false;
    }
    return true;
  }

 private:
  template <typename Shaped>
  static std::unique_ptr<Structure> make(Memory memory, const Size& size) {
    auto shaped = std::make_unique<Shaped>(memory);
    if (memory.is_fresh()) {
      memory.format();
      shaped->create(size);
    }
    shaped->attach();
    return shaped;
  }

  bool is_list_;
  char* base_ = nullptr;
  std::unique_ptr<Structure> structure_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  File file(argv[1], argv[2]);
  if (std::strcmp(argv[3], "check") == 0) {
    const bool whole = file.is_what_was_done();
    std::printf("%ju %s\n", std::uintmax_t{file.done()}, whole ? "whole" : "torn");
    return whole ? 0 : 1;
  }
  const std::string source = argv[2], copies = argv[4], journal = ".vellum-journal";
  if (!file.sync()) return 1;  // empty, as create() has left it
  for (std::uint64_t n = 1; n <= std::strtoull(argv[3], nullptr, 10); ++n) {
    file.apply(n);
    if (!file.sync()) return 1;
    const std::string copy = copies + "/" + std::to_string(n);
    std::filesystem::copy_file(source, copy);
    std::filesystem::copy_file(source + journal, copy + journal);
  }
}
