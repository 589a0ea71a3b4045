// bench_lmdb: writes keys and bodies, month by month, into an LMDB environment; then reads it at
// random. It does not use Vellum: table.py runs it with and without.
//
//   bench_lmdb KV DIR MODE BATCH READS
//   bench_lmdb KV DIR compare MONTH     exit status 1: the environment differs from the rows of KV up to MONTH
//
// KV: lines of `month TAB key TAB value` in order of time, values escaped (\\, \t, \n, \r), `\D` to
// delete the key. MODE: default, writemap (both durable commits), nosync (WRITEMAP|NOSYNC, and one
// flush a month). BATCH: rows per transaction; 0: a month.
//
// After each month it prints `month NAME ROWS SECONDS` and waits for a line, to permit a snapshot;
// at the end `reads COUNT SECONDS` and `scan ENTRIES SECONDS`, both of the current environment,
// open for writing.
#include <lmdb.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, "bench_lmdb: %s: %s\n", what, mdb_strerror(error));
  std::exit(1);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_lmdb: %s\n", what.c_str());
  std::exit(1);
}

struct Row {
  std::string_view month, key, value;
  bool deletes = false;
};

std::string read_whole(const char* path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) fail(std::string(path) + ": cannot be read");
  std::string text(static_cast<std::size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

// In place, as it only becomes shorter.
std::string_view unescape(char* begin, const char* end) {
  char* to = begin;
  for (const char* from = begin; from < end; ++from) {
    if (*from != '\\' || from + 1 == end) {
      *to++ = *from;
      continue;
    }
    const char next = *++from;
    *to++ = next == 't' ? '\t' : next == 'n' ? '\n' : next == 'r' ? '\r' : next;
  }
  return {begin, static_cast<std::size_t>(to - begin)};
}

std::vector<Row> parse(std::string& text) {
  std::vector<Row> rows;
  char* at = text.data();
  char* const end = at + text.size();
  while (at < end) {
    char* const line_end = std::find(at, end, '\n');
    char* const first = std::find(at, line_end, '\t');
    char* const second = first == line_end ? first : std::find(first + 1, line_end, '\t');
    if (second == line_end) fail("a line without two tabs: " + std::to_string(rows.size() + 1));
    Row row;
    row.month = {at, static_cast<std::size_t>(first - at)};
    row.key = {first + 1, static_cast<std::size_t>(second - first - 1)};
    row.deletes =
        std::string_view(second + 1, static_cast<std::size_t>(line_end - second - 1)) == "\\D";
    if (!row.deletes) row.value = unescape(second + 1, line_end);
    rows.push_back(row);
    at = line_end + 1;
  }
  return rows;
}

MDB_val val(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

class Environment {
 public:
  Environment(const char* directory, const std::string& mode) {
    unsigned flags = 0;
    if (mode == "writemap") {
      flags = MDB_WRITEMAP;
    } else if (mode == "nosync") {
      flags = MDB_WRITEMAP | MDB_NOSYNC;
    } else if (mode != "default") {
      fail("no mode " + mode);
    }
    nosync_ = mode == "nosync";
    check(mdb_env_create(&env_), "create");
    check(mdb_env_set_mapsize(env_, 8ULL << 30), "mapsize");
    check(mdb_env_open(env_, directory, flags, 0644), directory);
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &txn), "begin");
    check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "open");
    check(mdb_txn_commit(txn), "commit");
  }
  ~Environment() { mdb_env_close(env_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void transact(const Row* begin, const Row* end) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &txn), "begin");
    for (const Row* row = begin; row != end; ++row) {
      MDB_val key = val(row->key), value = val(row->value);
      const int error =
          row->deletes ? mdb_del(txn, dbi_, &key, nullptr) : mdb_put(txn, dbi_, &key, &value, 0);
      check(error == MDB_NOTFOUND ? 0 : error, "put");
    }
    check(mdb_txn_commit(txn), "commit");
  }
  void flush_if_nosync() {
    if (nosync_) check(mdb_env_sync(env_, 1), "sync");
  }

  double read(const std::vector<std::string_view>& keys, std::size_t reads) {
    std::mt19937_64 random(7);
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
    const auto start = Clock::now();
    for (std::size_t i = 0; i < reads; ++i) {
      MDB_val key = val(keys[random() % keys.size()]), value;
      check(mdb_get(txn, dbi_, &key, &value), "get");
      note(value);
    }
    const double seconds = seconds_since(start);
    mdb_txn_abort(txn);
    return seconds;
  }

  // The number of entries. Ends the program if one is not among `rows`.
  std::size_t compare(const std::unordered_map<std::string_view, std::string_view>& rows) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
    for (const auto& [name, expected] : rows) {
      MDB_val key = val(name), value;
      check(mdb_get(txn, dbi_, &key, &value), "get");
      if (std::string_view(static_cast<char*>(value.mv_data), value.mv_size) != expected)
        fail("another value: " + std::string(name));
    }
    mdb_txn_abort(txn);
    return scan();
  }

  std::size_t scan() {
    MDB_txn* txn = nullptr;
    MDB_cursor* cursor = nullptr;
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
    check(mdb_cursor_open(txn, dbi_, &cursor), "cursor");
    std::size_t entries = 0;
    MDB_val key, value;
    for (; mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0; ++entries) note(value);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return entries;
  }

 private:
  // Reads a byte of each cache line.
  void note(const MDB_val& value) {
    for (std::size_t at = 0; at < value.mv_size; at += 64)
      sum_ = sum_ + static_cast<const unsigned char*>(value.mv_data)[at];
  }

  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  bool nosync_ = false;
  volatile std::uint64_t sum_ = 0;
};

std::vector<std::string_view> keys_left(const std::vector<Row>& rows) {
  std::unordered_set<std::string_view> left;
  for (const Row& row : rows) {
    if (row.deletes) {
      left.erase(row.key);
    } else {
      left.insert(row.key);
    }
  }
  return {left.begin(), left.end()};
}

// What the rows up to the end of `month` leave.
std::unordered_map<std::string_view, std::string_view> content_after(const std::vector<Row>& rows,
                                                                     std::string_view month) {
  std::unordered_map<std::string_view, std::string_view> content;
  bool reached = false;
  for (const Row& row : rows) {
    if (reached && row.month != month) return content;
    reached = row.month == month;
    if (row.deletes) {
      content.erase(row.key);
    } else {
      content[row.key] = row.value;
    }
  }
  if (!reached) fail("no month " + std::string(month));
  return content;
}

void ingest(Environment& environment, const std::vector<Row>& rows, std::size_t batch) {
  std::string answer;
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t end = at;
    while (end < rows.size() && rows[end].month == rows[at].month) ++end;
    const std::size_t step = batch == 0 ? end - at : batch;
    const auto start = Clock::now();
    for (std::size_t from = at; from < end; from += step)
      environment.transact(&rows[from], &rows[std::min(end, from + step)]);
    environment.flush_if_nosync();
    std::printf("month %.*s %zu %.6f\n", static_cast<int>(rows[at].month.size()),
                rows[at].month.data(), end - at, seconds_since(start));
    std::fflush(stdout);
    if (!std::getline(std::cin, answer)) std::exit(1);
    at = end;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool compares = argc == 5 && std::string_view(argv[3]) == "compare";
  if (argc != 6 && !compares) fail("bench_lmdb KV DIR MODE BATCH READS");
  std::string text = read_whole(argv[1]);
  const std::vector<Row> rows = parse(text);
  if (compares) {
    const auto content = content_after(rows, argv[4]);
    if (Environment(argv[2], "default").compare(content) != content.size())
      fail("entries are missing, or are too many");
    return 0;
  }
  Environment environment(argv[2], argv[3]);
  ingest(environment, rows, std::strtoull(argv[4], nullptr, 10));

  const auto keys = keys_left(rows);
  const std::size_t reads = std::strtoull(argv[5], nullptr, 10);
  environment.read(keys, reads);  // touches everything once
  std::printf("reads %zu %.6f\n", reads, environment.read(keys, reads));
  const auto start = Clock::now();
  const std::size_t entries = environment.scan();
  std::printf("scan %zu %.6f\n", entries, seconds_since(start));
  if (entries != keys.size()) fail("entries are missing, or are too many");
}
