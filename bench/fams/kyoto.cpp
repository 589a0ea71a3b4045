// bench/fams/kyoto.cpp: Kyoto Cabinet's hash database with two ways to commit: its own
// transactions, hard (a write-ahead log of old bytes, flushed at each write, and msync), and no
// transactions but synchronize(hard), which is msync(2) of its mapping. The second is
// crash-consistent if msync is: when Kyoto Cabinet and this file are compiled by vellum-clang++.
//
//   bench_fams_kyoto FILE --mode transactions|synchronize|none
//                    [--workload insert|update] [--every 100] [--keys 100000]
//                    [--operations 100000] [--seconds 10]
//
// It uses only Kyoto Cabinet's public interface and the standard library; any compiler builds it:
// CXX kyoto.cpp -std=c++17 -IKYOTO KYOTO/libkyotocabinet.a -lz -llzo2 -llzma -lpthread, with the
// libraries that Kyoto Cabinet was configured with. The file is new; afterwards it is reopened, and
// each key must exist with its value.
#include <kchashdb.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using kyotocabinet::HashDB;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kValueBytes = 100;
// All of the file is in the mapping: pwrite(2) would write the parts behind it.
constexpr std::int64_t kMapBytes = std::int64_t{1} << 30;

struct Options {
  std::string file, mode = "transactions", workload = "insert";
  std::uint64_t every = 100, keys = 100'000, operations = 100'000, seconds = 10;
};

Options parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::uint64_t*> numbers{{"--every", &options.every},
                                                {"--keys", &options.keys},
                                                {"--operations", &options.operations},
                                                {"--seconds", &options.seconds}};
  std::map<std::string, std::string*> words{{"--mode", &options.mode},
                                            {"--workload", &options.workload}};
  if (argc % 2 != 0) throw std::runtime_error("usage: FILE [--name VALUE]...");
  options.file = argv[1];
  for (int i = 2; i < argc; i += 2) {
    if (numbers.count(argv[i]) != 0) {
      *numbers[argv[i]] = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (words.count(argv[i]) != 0) {
      *words[argv[i]] = argv[i + 1];
    } else {
      throw std::runtime_error(std::string("not understood: ") + argv[i]);
    }
  }
  return options;
}

void must(bool ok, const HashDB& database, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + database.error().message());
}

std::uint64_t mix(std::uint64_t x) {  // one to one
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

void value_of(std::uint64_t ordinal, char* value) {
  for (std::size_t i = 0; i < kValueBytes; i += 4) {
    const auto word = static_cast<std::uint32_t>(mix(ordinal * 32 + i));
    std::memcpy(value + i, &word, sizeof word);
  }
}

void open(HashDB& database, const Options& options, std::uint32_t mode) {
  must(database.tune_map(kMapBytes), database, "tune_map");
  must(database.tune_buckets(static_cast<std::int64_t>(2 * options.keys)), database,
       "tune_buckets");
  must(database.open(options.file, HashDB::OWRITER | mode), database, "open");
}

class Writer {
 public:
  Writer(HashDB& database, const std::string& mode, std::uint64_t every)
      : database_(database), transactions_(mode == "transactions"), every_(every) {
    synchronizes_ = mode == "synchronize";
    if (!transactions_ && !synchronizes_ && mode != "none")
      throw std::runtime_error("no mode " + mode);
  }
  // True after a commit.
  bool put(std::uint64_t key, std::uint64_t ordinal) {
    if (since_ == 0 && transactions_) must(database_.begin_transaction(true), database_, "begin");
    char value[kValueBytes];
    value_of(ordinal, value);
    const auto* bytes = reinterpret_cast<const char*>(&key);
    must(database_.set(bytes, sizeof key, value, sizeof value), database_, "set");
    if (++since_ < every_) return false;
    commit();
    return true;
  }
  void commit() {
    if (since_ == 0) return;
    since_ = 0;
    if (transactions_) must(database_.end_transaction(true), database_, "end_transaction");
    if (synchronizes_) must(database_.synchronize(true), database_, "synchronize");
  }

 private:
  HashDB& database_;
  bool transactions_, synchronizes_ = false;
  std::uint64_t every_, since_ = 0;
};

// The number of each key's value after an operation; 0: the key is absent.
using Ordinals = std::vector<std::uint64_t>;

void run(HashDB& database, const Options& options, Ordinals& ordinals) {
  const bool insert = options.workload == "insert";
  if (!insert && options.workload != "update") throw std::runtime_error("no such workload");
  Writer writer(database, options.mode, options.every);
  std::mt19937_64 random(11);
  const std::uint64_t operations = insert ? options.keys : options.operations;
  std::uint64_t done = 0;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (done < operations) {
    const std::uint64_t index = insert ? done : random() % options.keys;
    ordinals[index] = options.keys + ++done;
    if (writer.put(mix(index + 1), ordinals[index]) &&
        seconds() > static_cast<double>(options.seconds)) {
      break;
    }
  }
  writer.commit();
  const double took = seconds();
  std::printf("kyoto %s, %s, every %llu: %.0f operations/s\n", options.mode.c_str(),
              options.workload.c_str(), static_cast<unsigned long long>(options.every),
              static_cast<double>(done) / took);
}

void fill(HashDB& database, const Options& options, Ordinals& ordinals) {
  if (options.workload == "insert") return;
  Writer writer(database, "none", options.keys);
  for (std::uint64_t index = 0; index < options.keys; ++index) {
    ordinals[index] = index + 1;
    writer.put(mix(index + 1), ordinals[index]);
  }
  must(database.synchronize(true), database, "synchronize");
}

void verify(HashDB& database, const Ordinals& ordinals) {
  std::int64_t there = 0;
  for (std::uint64_t index = 0; index < ordinals.size(); ++index) {
    const std::uint64_t key = mix(index + 1);
    char value[kValueBytes], right[kValueBytes];
    const auto* bytes = reinterpret_cast<const char*>(&key);
    const std::int32_t length = database.get(bytes, sizeof key, value, sizeof value);
    if (ordinals[index] == 0 && length < 0) continue;
    ++there;
    value_of(ordinals[index], right);
    if (ordinals[index] == 0 || length != static_cast<std::int32_t>(kValueBytes) ||
        std::memcmp(value, right, sizeof value) != 0) {
      throw std::runtime_error("key " + std::to_string(index) + " is wrong");
    }
  }
  if (database.count() != there) throw std::runtime_error("the count is wrong");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    Ordinals ordinals(options.keys, 0);
    HashDB database;
    open(database, options, HashDB::OCREATE | HashDB::OTRUNCATE);
    fill(database, options, ordinals);
    run(database, options, ordinals);
    must(database.close(), database, "close");
    open(database, options, 0);
    verify(database, ordinals);
    must(database.close(), database, "close");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_fams_kyoto: %s\n", e.what());
    return 1;
  }
}
