// bench/fams/workloads.cpp: operations, their loop, and its expected result.
#include "workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <unordered_map>

#include "lib/report.hpp"

namespace fams {
namespace {

constexpr std::uint64_t kFillBatch = 1000;

std::uint64_t mix(std::uint64_t x) {  // one to one
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Ranks below `items`, 0 the most frequent (Gray et al., SIGMOD 1994, as in YCSB).
class Zipfian {
 public:
  explicit Zipfian(std::uint64_t items) : items_(static_cast<double>(items)) {
    for (std::uint64_t i = 1; i <= items; ++i)
      zeta_ += std::pow(1.0 / static_cast<double>(i), kTheta);
    const double zeta2 = 1 + std::pow(0.5, kTheta);
    eta_ = (1 - std::pow(2 / items_, 1 - kTheta)) / (1 - zeta2 / zeta_);
  }
  std::uint64_t operator()(std::mt19937_64& random) const {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    if (u * zeta_ < 1) return 0;
    if (u * zeta_ < 1 + std::pow(0.5, kTheta)) return 1;
    const double rank = items_ * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kTheta));
    return static_cast<std::uint64_t>(std::min(rank, items_ - 1));
  }

 private:
  static constexpr double kTheta = 0.99;
  double items_, zeta_ = 0, eta_ = 0;
};

// One workload letter of YCSB: its rarer operation, that one's share, and the other operation.
struct Mix {
  Kind rarer;
  double part;
  Kind other;
  bool latest;
};

Mix mix_of(const std::string& name) {
  if (name == "update") return {Kind::update, 1, Kind::read, false};
  if (name == "read" || name == "C") return {Kind::update, 0, Kind::read, false};
  if (name == "A") return {Kind::update, 0.5, Kind::read, false};
  if (name == "B") return {Kind::update, 0.05, Kind::read, false};
  if (name == "D") return {Kind::insert, 0.05, Kind::read, true};
  if (name == "E") return {Kind::insert, 0.05, Kind::scan, false};
  if (name == "F") return {Kind::modify, 0.5, Kind::read, false};
  unsupported("no workload " + name);
}

void add_mixed(Workload& workload, const std::string& name, std::uint64_t count) {
  std::mt19937_64 random(11);
  const Mix mixed = mix_of(name);
  const bool uniform = name.size() > 1;
  const Zipfian zipfian(workload.filled);
  std::uniform_real_distribution<double> part(0, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    Operation op{0, 0, part(random) < mixed.part ? mixed.rarer : mixed.other};
    std::uint64_t index = 0;
    if (op.kind == Kind::insert) {
      index = workload.keys++;
    } else if (uniform) {
      index = random() % workload.filled;
    } else {
      const std::uint64_t rank = zipfian(random);
      index = mixed.latest ? workload.keys - 1 - rank : mix(rank) % workload.filled;
    }
    op.index = static_cast<std::uint32_t>(index);
    if (op.kind == Kind::scan) op.length = 1 + static_cast<std::uint32_t>(random() % 100);
    workload.operations.push_back(op);
  }
}

bool changes(Kind kind) { return kind != Kind::read && kind != Kind::scan; }

// For each key, by its index, the ordinal of its value; -1: absent.
std::vector<std::int64_t> expected(const Workload& workload, std::uint64_t operations) {
  std::vector<std::int64_t> ordinals(workload.keys, -1);
  for (std::uint64_t i = 0; i < workload.filled; ++i) ordinals[i] = static_cast<std::int64_t>(i);
  for (std::uint64_t i = 0; i < operations; ++i) {
    const Operation& op = workload.operations[i];
    if (!changes(op.kind)) continue;
    ordinals[op.index] =
        op.kind == Kind::remove ? -1 : static_cast<std::int64_t>(workload.filled + i);
  }
  return ordinals;
}

[[noreturn]] void wrong(const std::string& what) {
  throw std::runtime_error("the structure is wrong: " + what);
}

// Words without stores are zeros, and are skipped.
void verify_words(Structure& structure, const Workload& workload, std::uint64_t operations) {
  std::unordered_map<std::uint32_t, std::uint64_t> words;
  for (std::uint64_t i = 0; i < operations; ++i) words[workload.operations[i].index] = i;
  for (const auto& [index, ordinal] : words) {
    Value value;
    structure.read(index, value);
    if (std::memcmp(&value, &value_of(ordinal), 8) != 0) wrong(fmt::format("word {}", index));
  }
}

void apply(Structure& structure, const Workload& workload, std::uint64_t at, Value& value) {
  const Operation& op = workload.operations[at];
  const Key key = workload.key(op.index);
  const Value& fresh = value_of(workload.filled + at);
  bool there = true;
  switch (op.kind) {
    case Kind::insert:
      structure.insert(key, fresh);
      break;
    case Kind::update:
      there = structure.update(key, fresh);
      break;
    case Kind::read:
      there = structure.read(key, value);
      break;
    case Kind::modify:
      there = structure.read(key, value) && structure.update(key, fresh);
      break;
    case Kind::scan:
      there = structure.scan(key, op.length, value) != 0;
      break;
    case Kind::remove:
      there = structure.remove(key);
      break;
  }
  if (!there) wrong(fmt::format("key {:#x} is not there", key));
}

}  // namespace

Key Workload::key(std::uint64_t index) const { return in_order ? index : mix(index + 1); }

Workload make_workload(const std::string& name, Shape shape, std::uint64_t keys,
                       std::uint64_t operations) {
  Workload workload;
  workload.in_order = shape == Shape::list || shape == Shape::scattered;
  workload.operations.reserve(operations);
  if (name == "scattered") {
    std::mt19937_64 random(7);
    for (std::uint64_t i = 0; i < operations; ++i) {
      workload.operations.push_back({static_cast<std::uint32_t>(random() % keys), 0, Kind::update});
    }
    return workload;
  }
  workload.keys = keys;
  workload.filled = name == "insert" ? 0 : keys;
  if (name == "traverse") {
    workload.counts_visited = true;
    const auto all = static_cast<std::uint32_t>(keys);
    for (std::uint64_t i = 0; i < operations; i += keys) {
      workload.operations.push_back({0, all, Kind::scan});
    }
  } else if (name == "insert" || name == "remove") {
    const Kind kind = name == "insert" ? Kind::insert : Kind::remove;
    for (std::uint64_t i = 0; i < keys; ++i) {
      workload.operations.push_back({static_cast<std::uint32_t>(i), 0, kind});
    }
  } else {
    add_mixed(workload, name, operations);
  }
  return workload;
}

const Value& value_of(std::uint64_t ordinal) {
  static constexpr std::size_t kPoolBytes = 64 << 10;
  static const std::vector<unsigned char> pool = [] {
    std::vector<unsigned char> bytes(kPoolBytes + kValueBytes);
    std::mt19937_64 random(5);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    return bytes;
  }();
  return *reinterpret_cast<const Value*>(&pool[ordinal * 8 % kPoolBytes]);
}

void fill(Store& store, const Workload& workload) {
  for (std::uint64_t i = 0; i < workload.filled; ++i) {
    store.structure().insert(workload.key(i), value_of(i));
    if ((i + 1) % kFillBatch == 0) store.commit();
  }
  store.commit();
}

Progress run(Store& store, const Workload& workload, std::uint64_t every, double seconds_limit) {
  Structure& structure = store.structure();
  const std::uint64_t look_every = std::max<std::uint64_t>(every, 64);
  Value value{};
  std::uint64_t done = 0, uncommitted = 0, unlooked = 0;
  bool changed = false;
  const auto start = bench::Clock::now();
  while (done < workload.operations.size()) {
    changed |= changes(workload.operations[done].kind);
    apply(structure, workload, done++, value);
    if (++uncommitted == every) {
      if (changed) store.commit();
      changed = false;
      unlooked += uncommitted;
      uncommitted = 0;
      if (unlooked >= look_every) {
        if (bench::seconds_since(start) > seconds_limit) break;
        unlooked = 0;
      }
    }
  }
  if (changed) store.commit();
  Progress progress{done, done, bench::seconds_since(start)};
  if (workload.counts_visited) progress.counted = done * workload.filled;
  return progress;
}

void verify(Structure& structure, const Workload& workload, std::uint64_t operations,
            std::uint64_t step) {
  if (workload.keys == 0) return verify_words(structure, workload, operations);
  const std::vector<std::int64_t> ordinals = expected(workload, operations);
  std::uint64_t there = 0;
  for (std::uint64_t i = 0; i < ordinals.size(); ++i) {
    there += ordinals[i] >= 0;
    if (i % step != 0 || ordinals[i] < 0) continue;
    Value value{};
    if (!structure.read(workload.key(i), value)) wrong(fmt::format("key {} is not there", i));
    const Value& right = value_of(static_cast<std::uint64_t>(ordinals[i]));
    if (std::memcmp(&value, &right, sizeof value) != 0)
      wrong(fmt::format("the value of key {}", i));
  }
  const std::uint64_t count = structure.count();
  if (count != there) wrong(fmt::format("{} keys instead of {}", count, there));
}

}  // namespace fams
