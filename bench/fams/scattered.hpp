// bench/fams/scattered.hpp: an array of 8-byte words with separate stores; its keys are their
// indexes, and each store is a value's first 8 bytes.
#pragma once

#include <cstring>

#include "store.hpp"

namespace fams {

template <typename Memory>
class Scattered final : public Structure {
 public:
  explicit Scattered(Memory memory) : memory_(memory) {}
  // The memory of a new file is zeros.
  void create(const Size& size) { memory_.set_root(memory_.allocate(size.scattered_bytes)); }
  void attach() { words_ = static_cast<std::uint64_t*>(memory_.root()); }

  void insert(Key key, const Value& value) override { update(key, value); }
  bool update(Key key, const Value& value) override {
    memory_.stores(&words_[key], sizeof(std::uint64_t));
    std::uint64_t word;
    std::memcpy(&word, &value, sizeof word);
    words_[key] = word;
    return true;
  }
  bool read(Key key, Value& value) override {
    std::memcpy(&value, &words_[key], sizeof(std::uint64_t));
    return true;
  }
  std::uint64_t scan(Key, std::uint64_t, Value&) override { unsupported("no scan of an array"); }
  bool remove(Key) override { unsupported("an array keeps its words"); }
  std::uint64_t count() override { return 0; }

 private:
  Memory memory_;
  std::uint64_t* words_ = nullptr;
};

}  // namespace fams
