// bench/fams/store.hpp: the interface of all compared implementations: a structure of
// 8-byte keys and 100-byte values, and a store that makes its changes durable.
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

// The maximal content of a structure, which is sized for that before it is filled.
struct Size {
  Shape shape;
  std::uint64_t keys;             // the number of all keys ever inserted
  std::uint64_t scattered_bytes;  // of the array of the scattered stores
};

// A list keeps the order of insertion, and removes the oldest key. An
// operation that a structure does not have throws.
class Structure {
 public:
  virtual ~Structure() = default;
  virtual void insert(Key key, const Value& value) = 0;
  virtual bool update(Key key, const Value& value) = 0;
  virtual bool read(Key key, Value& value) = 0;
  // Copies the values of up to `count` keys from `from` on; `value` has the last of them.
  // Returns their number. A list starts at its head.
  virtual std::uint64_t scan(Key from, std::uint64_t count, Value& value) = 0;
  virtual bool remove(Key key) = 0;
  virtual std::uint64_t count() = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual Structure& structure() = 0;  // until close()
  // On return everything since the last commit is durable. A commit without changes may cost
  // nothing.
  virtual void commit() = 0;
  // After filling, before measuring: deferred work is done now.
  virtual void settle() {}
  virtual void close() = 0;
  virtual void open() = 0;                        // the files after close()
  virtual bool keeps() const { return true; }     // close() and open() restore all of it
  virtual bool can_read() const { return true; }  // the floor cannot
};

struct Setting {
  std::string name;       // of the store
  std::string directory;  // empty, or with the store's files
  Size size;
  bool persistent_memory;  // emulated: PMEM_IS_PMEM_FORCE=1
  bool fresh;              // create a new one; otherwise open()'s
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
