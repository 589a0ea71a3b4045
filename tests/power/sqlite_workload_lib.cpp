// The control: SQLite in WAL mode, PRAGMA synchronous=FULL.
#include <fmt/format.h>
#include <sqlite3.h>

#include <random>
#include <stdexcept>

#include "power/workload_lib.hpp"

namespace vellum::power {

namespace {

class Database {
 public:
  explicit Database(const std::string& path) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3* handle = nullptr;
    const int result = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    handle_.reset(handle);
    if (result != SQLITE_OK) fail(path);
  }

  void execute(const std::string& sql) {
    if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
  }
  // The first column of the first row.
  std::string ask(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      fail(sql);
    std::string out;
    const int result = sqlite3_step(statement);
    const unsigned char* text = result == SQLITE_ROW ? sqlite3_column_text(statement, 0) : nullptr;
    if (text != nullptr) out = reinterpret_cast<const char*>(text);
    sqlite3_finalize(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail(sql);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& doing) {
    throw std::runtime_error(fmt::format("SQLite: {}: {}", doing, sqlite3_errmsg(handle_.get())));
  }
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// Each transaction writes its number into some rows and into `last`.
class SqliteWorkload : public Workload {
 public:
  SqliteWorkload(std::uint64_t seed, std::uint64_t transactions)
      : random_(seed), transactions_(transactions) {}
  const char* name() const override { return "SQLite"; }

  void run(const Site& site) override {
    Database database(path(site.directory));
    database.ask("PRAGMA journal_mode=WAL");
    database.execute("PRAGMA synchronous=FULL");
    database.execute("PRAGMA wal_autocheckpoint=30");
    for (std::uint64_t n = 1; n <= transactions_; ++n) {
      site.progress.begun = n;
      database.execute(transaction(n));
      site.progress.returned = n;
    }
  }

  void check(const std::string& directory, const Allowed& allowed) override {
    Database database(path(directory));
    const std::string verdict = database.ask("PRAGMA integrity_check");
    if (verdict != "ok") throw std::runtime_error("SQLite: " + verdict);
    std::uint64_t found = 0;
    if (database.ask("SELECT name FROM sqlite_master WHERE name='last'") == "last") {
      found = std::stoull(database.ask("SELECT n FROM last"));
    }
    if (found < allowed.returned || found > allowed.begun) {
      throw std::runtime_error(fmt::format("SQLite: transaction {} is the last", found));
    }
    if (found == 0) return;
    const std::string newest = database.ask("SELECT max(n) FROM rows");
    if (newest != std::to_string(found)) {
      throw std::runtime_error(
          fmt::format("SQLite: rows of {}, but {} is the last", newest, found));
    }
  }

 private:
  static std::string path(const std::string& directory) { return directory + "/database"; }

  std::string transaction(std::uint64_t n) {
    std::string sql = "BEGIN;";
    if (n == 1) {
      sql +=
          "CREATE TABLE rows(k INTEGER PRIMARY KEY, n INTEGER, data BLOB);"
          "CREATE TABLE last(n INTEGER); INSERT INTO last VALUES(0);";
    }
    const std::uint64_t rows = 1 + random_() % 6;
    for (std::uint64_t i = 0; i < rows; ++i) {
      sql += fmt::format("INSERT OR REPLACE INTO rows VALUES({}, {}, randomblob({}));",
                         random_() % 200, n, 1 + random_() % 1500);
    }
    return sql + fmt::format("UPDATE last SET n={}; COMMIT;", n);
  }

  std::mt19937_64 random_;
  std::uint64_t transactions_;
};

}  // namespace

std::unique_ptr<Workload> sqlite_workload(std::uint64_t seed, std::uint64_t transactions) {
  return std::make_unique<SqliteWorkload>(seed, transactions);
}

}  // namespace vellum::power
