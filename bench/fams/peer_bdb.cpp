// bench/fams/peer_bdb.cpp: BerkeleyDB, transactional, for one process (DB_PRIVATE) with one thread,
// which needs no locks: a cache for everything, a large log buffer, one transaction per commit,
// which flushes the log. Its b-tree for lists and trees, its hash for the hash map.
#include <db.h>
#include <endian.h>

#include <cstdlib>
#include <cstring>

#include "store.hpp"

namespace fams {
namespace {

void must(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + db_strerror(result));
}

class Bdb final : public Store, public Structure {
 public:
  explicit Bdb(const Setting& setting) : setting_(setting) { open(); }
  ~Bdb() override {
    try {
      close();
    } catch (const std::exception&) {  // the cell has failed already
    }
  }
  Structure& structure() override { return *this; }

  void insert(Key key, const Value& value) override { put(key, value); }
  bool update(Key key, const Value& value) override {
    put(key, value);
    return true;
  }
  bool read(Key key, Value& value) override {
    key = htobe64(key);
    DBT k = of(&key, sizeof key), v = of(&value, sizeof value);
    const int result = table_->get(table_, transaction_, &k, &v, 0);
    if (result == DB_NOTFOUND) return false;
    must(result, "DB->get");
    return true;
  }
  std::uint64_t scan(Key from, std::uint64_t count, Value& value) override {
    if (setting_.size.shape == Shape::hash) unsupported("a hash has no order");
    DBC* cursor = nullptr;
    must(table_->cursor(table_, transaction_, &cursor, 0), "DB->cursor");
    from = htobe64(from);
    DBT k = of(&from, sizeof from), v = of(&value, sizeof value);
    int result = cursor->get(cursor, &k, &v, DB_SET_RANGE);
    std::uint64_t found = 0;
    while (result == 0) {
      if (++found == count) break;
      result = cursor->get(cursor, &k, &v, DB_NEXT);
    }
    must(cursor->close(cursor), "DBC->close");
    return found;
  }
  bool remove(Key key) override {
    key = htobe64(key);
    DBT k = of(&key, sizeof key);
    const int result = table_->del(table_, writing(), &k, 0);
    if (result == DB_NOTFOUND) return false;
    must(result, "DB->del");
    return true;
  }
  std::uint64_t count() override {
    if (setting_.size.shape == Shape::hash) {
      DB_HASH_STAT* stat = nullptr;
      must(table_->stat(table_, nullptr, &stat, 0), "DB->stat");
      return freed(stat, stat->hash_nkeys);
    }
    DB_BTREE_STAT* stat = nullptr;
    must(table_->stat(table_, nullptr, &stat, 0), "DB->stat");
    return freed(stat, stat->bt_nkeys);
  }

  void commit() override {
    if (transaction_ != nullptr) must(transaction_->commit(transaction_, DB_TXN_SYNC), "commit");
    transaction_ = nullptr;
  }
  void settle() override {
    must(environment_->txn_checkpoint(environment_, 0, 0, DB_FORCE), "txn_checkpoint");
  }
  void close() override {
    if (environment_ == nullptr) return;
    if (transaction_ != nullptr) transaction_->abort(transaction_);
    transaction_ = nullptr;
    if (table_ != nullptr) must(table_->close(table_, 0), "DB->close");
    table_ = nullptr;
    settle();
    DB_ENV* environment = environment_;
    environment_ = nullptr;
    must(environment->close(environment, 0), "DB_ENV->close");
  }
  void open() override {
    must(db_env_create(&environment_, 0), "db_env_create");
    DB_ENV* e = environment_;
    must(e->set_cachesize(e, 1, 0, 1), "set_cachesize");
    must(e->set_lg_bsize(e, 16 << 20), "set_lg_bsize");
    must(e->set_lg_max(e, 128 << 20), "set_lg_max");
    must(e->log_set_config(e, DB_LOG_AUTO_REMOVE, 1), "DB_LOG_AUTO_REMOVE");
    constexpr u_int32_t kParts = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL;
    must(e->open(e, setting_.directory.c_str(), DB_CREATE | DB_PRIVATE | DB_RECOVER | kParts, 0644),
         "DB_ENV->open");
    must(db_create(&table_, environment_, 0), "db_create");
    const bool hash = setting_.size.shape == Shape::hash;
    if (hash && setting_.fresh) {
      constexpr u_int32_t kKeysAPage = 30;
      must(table_->set_h_ffactor(table_, kKeysAPage), "set_h_ffactor");
      must(table_->set_h_nelem(table_, static_cast<u_int32_t>(setting_.size.keys)), "set_h_nelem");
    }
    must(table_->open(table_, nullptr, "kv", nullptr, hash ? DB_HASH : DB_BTREE,
                      DB_CREATE | DB_AUTO_COMMIT, 0644),
         "DB->open");
  }

 private:
  static DBT of(void* data, std::size_t bytes) {
    DBT item;
    std::memset(&item, 0, sizeof item);
    item.data = data;
    item.size = item.ulen = static_cast<u_int32_t>(bytes);
    item.flags = DB_DBT_USERMEM;
    return item;
  }
  template <typename Stat>
  static std::uint64_t freed(Stat* stat, std::uint64_t count) {
    std::free(stat);
    return count;
  }
  void put(Key key, const Value& value) {
    key = htobe64(key);
    DBT k = of(&key, sizeof key), v = of(const_cast<Value*>(&value), sizeof value);
    must(table_->put(table_, writing(), &k, &v, 0), "DB->put");
  }
  DB_TXN* writing() {
    if (transaction_ == nullptr) {
      must(environment_->txn_begin(environment_, nullptr, &transaction_, 0), "txn_begin");
    }
    return transaction_;
  }

  Setting setting_;
  DB_ENV* environment_ = nullptr;
  DB* table_ = nullptr;
  DB_TXN* transaction_ = nullptr;
};

}  // namespace

std::unique_ptr<Store> make_bdb(const Setting& setting) { return std::make_unique<Bdb>(setting); }

}  // namespace fams
