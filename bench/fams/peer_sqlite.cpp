// bench/fams/peer_sqlite.cpp: SQLite with a write-ahead log that every commit flushes
// (synchronous=FULL), for one process (locking_mode=EXCLUSIVE: no shared memory file); statements
// are prepared once; a key is its table's rowid.
#include <sqlite3.h>

#include <cstring>

#include "store.hpp"

namespace fams {
namespace {

class Sqlite final : public Store, public Structure {
 public:
  explicit Sqlite(const Setting& setting) : setting_(setting) { open(); }
  ~Sqlite() override { close(); }
  Structure& structure() override { return *this; }

  void insert(Key key, const Value& value) override {
    begin();
    bind(insert_, 1, key);
    bind(insert_, 2, value);
    step(insert_);
  }
  bool update(Key key, const Value& value) override {
    begin();
    bind(update_, 1, value);
    bind(update_, 2, key);
    step(update_);
    return sqlite3_changes(database_) == 1;
  }
  bool read(Key key, Value& value) override {
    bind(read_, 1, key);
    return fetch(read_, value) == 1;
  }
  std::uint64_t scan(Key from, std::uint64_t count, Value& value) override {
    bind(scan_, 1, from);
    bind(scan_, 2, count);
    return fetch(scan_, value);
  }
  bool remove(Key key) override {
    begin();
    bind(remove_, 1, key);
    step(remove_);
    return sqlite3_changes(database_) == 1;
  }
  std::uint64_t count() override {
    sqlite3_stmt* statement = prepare("SELECT count(*) FROM kv");
    sqlite3_step(statement);
    const auto rows = static_cast<std::uint64_t>(sqlite3_column_int64(statement, 0));
    sqlite3_finalize(statement);
    return rows;
  }

  void commit() override {
    if (in_transaction_) step(commit_);
    in_transaction_ = false;
  }
  void settle() override { execute("PRAGMA wal_checkpoint(TRUNCATE)"); }
  void close() override {
    if (database_ == nullptr) return;
    for (sqlite3_stmt* statement : {begin_, commit_, insert_, update_, read_, scan_, remove_}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(database_);
    database_ = nullptr;
  }
  void open() override {
    const std::string path = setting_.directory + "/sqlite";
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    must(sqlite3_open_v2(path.c_str(), &database_, kFlags, nullptr) == SQLITE_OK);
    execute("PRAGMA locking_mode=EXCLUSIVE");
    execute("PRAGMA journal_mode=WAL");
    execute("PRAGMA synchronous=FULL");
    execute("PRAGMA cache_size=-1048576");  // KiB
    execute("CREATE TABLE IF NOT EXISTS kv (k INTEGER PRIMARY KEY, v BLOB NOT NULL)");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    insert_ = prepare("INSERT INTO kv (k, v) VALUES (?, ?)");
    update_ = prepare("UPDATE kv SET v = ? WHERE k = ?");
    read_ = prepare("SELECT v FROM kv WHERE k = ?");
    scan_ = prepare("SELECT v FROM kv WHERE k >= ? ORDER BY k LIMIT ?");
    remove_ = prepare("DELETE FROM kv WHERE k = ?");
  }

 private:
  void must(bool ok) {
    if (!ok) throw std::runtime_error(std::string("sqlite: ") + sqlite3_errmsg(database_));
  }
  void execute(const char* sql) {
    must(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    must(sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) ==
         SQLITE_OK);
    return statement;
  }
  void begin() {
    if (!in_transaction_) step(begin_);
    in_transaction_ = true;
  }
  void bind(sqlite3_stmt* statement, int place, std::uint64_t number) {
    must(sqlite3_bind_int64(statement, place, static_cast<sqlite3_int64>(number)) == SQLITE_OK);
  }
  void bind(sqlite3_stmt* statement, int place, const Value& value) {
    must(sqlite3_bind_blob(statement, place, &value, sizeof value, nullptr) == SQLITE_OK);
  }
  void step(sqlite3_stmt* statement) {
    must(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
  }
  std::uint64_t fetch(sqlite3_stmt* statement, Value& value) {
    std::uint64_t rows = 0;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      if (sqlite3_column_bytes(statement, 0) != static_cast<int>(sizeof value)) break;
      std::memcpy(&value, sqlite3_column_blob(statement, 0), sizeof value);
      ++rows;
    }
    sqlite3_reset(statement);
    return rows;
  }

  Setting setting_;
  sqlite3* database_ = nullptr;
  bool in_transaction_ = false;
  sqlite3_stmt *begin_ = nullptr, *commit_ = nullptr, *insert_ = nullptr, *update_ = nullptr,
               *read_ = nullptr, *scan_ = nullptr, *remove_ = nullptr;
};

}  // namespace

std::unique_ptr<Store> make_sqlite(const Setting& setting) {
  return std::make_unique<Sqlite>(setting);
}

}  // namespace fams
