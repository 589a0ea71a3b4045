// bench/fams/peer_lmdb.cpp: LMDB with its default, durable flags; one write transaction per commit,
// begun by the first change. Keys are its native integers, which it compares fast. On persistent
// memory it writes through its map (MDB_WRITEMAP), which is twice as fast there.
#include <lmdb.h>

#include <cstring>

#include "store.hpp"

namespace fams {
namespace {

void must(int result, const char* what) {
  if (result != MDB_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": " + mdb_strerror(result));
  }
}

class Lmdb final : public Store, public Structure {
 public:
  explicit Lmdb(const Setting& setting) : setting_(setting) { open(); }
  ~Lmdb() override { close(); }
  Structure& structure() override { return *this; }

  void insert(Key key, const Value& value) override { put(key, value, append_flag()); }
  bool update(Key key, const Value& value) override {
    put(key, value, 0);
    return true;
  }
  bool read(Key key, Value& value) override {
    MDB_val k{sizeof key, &key}, v;
    const int result = mdb_get(reading(), table_, &k, &v);
    if (result == MDB_NOTFOUND) return false;
    must(result, "mdb_get");
    std::memcpy(&value, v.mv_data, sizeof value);
    return true;
  }
  std::uint64_t scan(Key from, std::uint64_t count, Value& value) override {
    MDB_cursor* cursor = nullptr;
    must(mdb_cursor_open(reading(), table_, &cursor), "mdb_cursor_open");
    MDB_val k{sizeof from, &from}, v;
    int result = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    std::uint64_t found = 0;
    while (result == MDB_SUCCESS) {
      std::memcpy(&value, v.mv_data, sizeof value);
      if (++found == count) break;
      result = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return found;
  }
  bool remove(Key key) override {
    MDB_val k{sizeof key, &key};
    const int result = mdb_del(writing(), table_, &k, nullptr);
    if (result == MDB_NOTFOUND) return false;
    must(result, "mdb_del");
    return true;
  }
  std::uint64_t count() override {
    MDB_stat stat;
    must(mdb_stat(reading(), table_, &stat), "mdb_stat");
    return stat.ms_entries;
  }

  void commit() override {
    if (writing_ != nullptr) must(mdb_txn_commit(writing_), "mdb_txn_commit");
    writing_ = nullptr;
  }
  void close() override {
    if (environment_ == nullptr) return;
    if (writing_ != nullptr) mdb_txn_abort(writing_);
    if (reading_ != nullptr) mdb_txn_abort(reading_);
    mdb_env_close(environment_);
    writing_ = reading_ = nullptr;
    environment_ = nullptr;
    is_reading_ = false;
  }
  void open() override {
    must(mdb_env_create(&environment_), "mdb_env_create");
    must(mdb_env_set_mapsize(environment_, std::size_t{8} << 30), "mdb_env_set_mapsize");
    const unsigned flags = setting_.persistent_memory ? MDB_WRITEMAP : 0;
    must(mdb_env_open(environment_, setting_.directory.c_str(), flags, 0644), "mdb_env_open");
    must(mdb_dbi_open(writing(), nullptr, MDB_INTEGERKEY | MDB_CREATE, &table_), "mdb_dbi_open");
    commit();
  }

 private:
  unsigned append_flag() const { return setting_.size.shape == Shape::list ? MDB_APPEND : 0; }
  void put(Key key, const Value& value, unsigned flags) {
    MDB_val k{sizeof key, &key}, v{sizeof value, const_cast<Value*>(&value)};
    must(mdb_put(writing(), table_, &k, &v, flags), "mdb_put");
  }
  // A reader must not stay open: it sees an old state, and prevents the reuse of its pages.
  MDB_txn* writing() {
    if (writing_ != nullptr) return writing_;
    if (is_reading_) mdb_txn_reset(reading_);
    is_reading_ = false;
    must(mdb_txn_begin(environment_, nullptr, 0, &writing_), "mdb_txn_begin");
    return writing_;
  }
  // The write transaction sees its own changes.
  MDB_txn* reading() {
    if (writing_ != nullptr) return writing_;
    if (reading_ == nullptr) {
      must(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reading_), "mdb_txn_begin");
    } else if (!is_reading_) {
      must(mdb_txn_renew(reading_), "mdb_txn_renew");
    }
    is_reading_ = true;
    return reading_;
  }

  Setting setting_;
  MDB_env* environment_ = nullptr;
  MDB_txn *writing_ = nullptr, *reading_ = nullptr;
  bool is_reading_ = false;
  MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<Store> make_lmdb(const Setting& setting) { return std::make_unique<Lmdb>(setting); }

}  // namespace fams
