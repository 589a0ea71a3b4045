// bench/fams/store.hpp: the interface of all peers of the benchmark: a structure of 8-byte keys and
// 100-byte values, and a store that makes its changes durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace fams {

using Key = std::uint64_t;

inline constexpr std::size_t kValueBytes = 100;
struct Value {
  unsigned char bytes[kValueBytes];
};

enum class Shape { list, btree, hash, scattered };

// The maximum content of a structure: it is sized for that before it is filled.
struct Size {
  Shape shape;
  std::uint64_t keys;             // all that are ever inserted
  std::uint64_t scattered_bytes;  // of the array for scattered stores
};

// A list keeps keys in the order of their insertion, and removes the oldest one. An operation that
// a shape does not support throws.
class Structure {
 public:
  virtual ~Structure() = default;
  virtual void insert(Key key, const Value& value) = 0;
  virtual bool update(Key key, const Value& value) = 0;
  virtual bool read(Key key, Value& value) = 0;
  // Copies the values of up to `count` keys, from `from` on; the last of them stays in `value`.
  // Returns their number. A list starts at its head.
  virtual std::uint64_t scan(Key from, std::uint64_t count, Value& value) = 0;
  virtual bool remove(Key key) = 0;
  virtual std::uint64_t count() = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual Structure& structure() = 0;  // until close()
  // All changes since the last commit are durable when it returns. A commit without changes may
  // cost nothing.
  virtual void commit() = 0;
  // After filling, before measuring: completes deferred work.
  virtual void settle() {}
  virtual void close() = 0;
  virtual void open() = 0;                        // the state that close() left
  virtual bool keeps() const { return true; }     // close() and open() restore all of it
  virtual bool can_read() const { return true; }  // the floor cannot
};

struct Setting {
  std::string name;       // of the store
  std::string directory;  // empty, or with the files that the store left
  Size size;
  bool persistent_memory;  // emulated: PMEM_IS_PMEM_FORCE=1
  bool fresh;              // create a new one; otherwise open() the old one
};

class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void unsupported(const std::string& what) { throw Unsupported(what); }

using MakeStore = std::unique_ptr<Store> (*)(const Setting&);

std::unique_ptr<Store> make_volatile(const Setting& setting);
std::unique_ptr<Store> make_msync(const Setting& setting);
std::unique_ptr<Store> make_floor(const Setting& setting);
std::unique_ptr<Store> make_vellum(const Setting& setting);
std::unique_ptr<Store> make_pmdk(const Setting& setting);
std::unique_ptr<Store> make_lmdb(const Setting& setting);
std::unique_ptr<Store> make_sqlite(const Setting& setting);
std::unique_ptr<Store> make_bdb(const Setting& setting);

}  // namespace fams
