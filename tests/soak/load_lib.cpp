#include "soak/load_lib.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace vellum::test {
namespace {

constexpr std::uint64_t kPageBytes = kWordsPerPage * 8;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

}  // namespace

std::string LoadCounts::to_string() const {
  return fmt::format(
      "{} pages loaded, {} stored to, {} commits, {} snapshots, {} rollbacks, {} reopenings, "
      "{} versions read, {} removed, {} gc ({} MiB freed, {} by recompression, {} refused)",
      loads.load(), stores.load(), commits.load(), snapshots.load(), rollbacks.load(),
      reopenings.load(), versions_read.load(), removals.load(), collections.load(),
      freed_bytes.load() >> 20, saved_bytes.load() >> 20, collections_refused.load());
}

Load::Load(const LoadOptions& options) : options_(options) {
  StoreOptions store_options;
  store_options.pack_bytes = options_.pack_bytes;
  store_.emplace(Store::create(options_.directory, store_options));
  live_.pages.resize(options_.region_bytes / kPageBytes - kWriters);
  live_.counters.resize(kWriters);
  committed_ = live_;
  snapshots_.reserve(options_.snapshots_kept * 4);
  for (std::size_t i = 0; i < kWriters; ++i) writer_random_[i].seed(i + 1);
  open_region();
  fill();
}

// A run starts in its steady state: every page has content.
void Load::fill() {
  for (std::uint64_t at = 0; at < live_.pages.size(); ++at) {
    const PageSeeds next{static_cast<std::uint32_t>(random_()), 0};
    store_page(page(at), live_.pages[at], next);
    live_.pages[at] = next;
  }
  snapshot();
}

RegionOptions Load::region_options() const {
  RegionOptions out;
  out.engine = options_.engine;
  out.memory_limit_bytes = options_.limit_bytes;
  return out;
}

void Load::open_region() {
  region_ = store_->open_or_create_region("main", options_.region_bytes, region_options());
}

std::uint64_t* Load::page(std::uint64_t number) const {
  return static_cast<std::uint64_t*>(region_.data()) + number * kWordsPerPage;
}

void Load::round(std::uint64_t number, const std::function<void()>& while_closed) {
  run_beside(number % 4 < 2, number);
  for (int i = 0; i < 50; ++i) {
    check_page(live_, region_.data(), random_() % live_.page_count(), "after a round");
  }
  switch (number % kRoundsACycle) {
    case 0:
    case 4:
      return snapshot();
    case 1:
    case 5:
      return commit();
    case 2:
      return rollback();
    case 3:
      snapshot();
      return use_a_branch(number);
    case 6:
      return reopen_region();
    default:
      commit();
      return reopen_store(while_closed);
  }
}

void Load::run_beside(bool with_commits, std::uint64_t number) {
  std::vector<std::thread> threads;
  threads.reserve(kWriters + 2);
  writing_ = kWriters;
  for (std::size_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([this, writer, number] {
      guarded([&] { write(writer, number); });
      --writing_;
    });
  }
  threads.emplace_back([this] { guarded([&] { read_versions(); }); });
  threads.emplace_back([this] { guarded([&] { collect(); }); });
  if (with_commits) guarded([&] { commit_beside(); });
  for (auto& thread : threads) thread.join();
  if (failed_) fail(problem_);
}

void Load::guarded(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = e.what();
    failed_ = true;
  }
}

// A writer has every kWriters-th page. Three of four steps affect a part of these that advances
// from round to round.
void Load::write(std::size_t writer, std::uint64_t number) {
  auto& random = writer_random_[writer];
  const std::uint64_t own = live_.pages.size() / kWriters;
  const std::uint64_t hot = own / 8;
  for (std::uint64_t i = 0; i < options_.steps_a_round && !failed_; ++i) {
    const bool anywhere = random() % 4 == 0;
    const std::uint64_t nth = anywhere ? random() % own : (number * hot / 2 + random() % hot) % own;
    const std::uint64_t at = nth * kWriters + writer;
    check_page(live_, region_.data(), at, "a writer");
    ++counts_.loads;
    if (random() % 4 == 0) continue;
    const PageSeeds next = next_seeds(random, live_.pages[at]);
    store_page(page(at), live_.pages[at], next);
    live_.pages[at] = next;
    ++counts_.stores;
    count_up(writer);
  }
}

PageSeeds Load::next_seeds(std::mt19937_64& random, PageSeeds now) const {
  const std::uint64_t what = random() % 16;
  const auto seed = static_cast<std::uint32_t>(random());
  if (what == 0) return {0, 0};
  if (what < 5) return {seed, 0};
  return {now.whole, seed};
}

void Load::count_up(std::size_t writer) {
  Progress& mine = progress_[writer];
  std::uint64_t& count = live_.counters[writer];
  ++count;
  mine.begun.store(count, std::memory_order_release);
  // Relaxed: see region.hpp on ThreadSanitizer.
  std::atomic_ref<std::uint64_t>(*page(live_.pages.size() + writer))
      .store(count, std::memory_order_relaxed);
  mine.done.store(count, std::memory_order_release);
}

// Stores before the call are in the commit; stores after it are not.
void Load::commit_beside() {
  do {
    std::array<std::uint64_t, kWriters> least{};
    for (std::size_t i = 0; i < kWriters; ++i) least[i] = progress_[i].done.load();
    auto end = counts_.commits++ % 2 == 0 ? region_.commit_async() : std::future<CommitReport>();
    if (!end.valid()) region_.commit();
    std::array<std::uint64_t, kWriters> most{};
    for (std::size_t i = 0; i < kWriters; ++i) most[i] = progress_[i].begun.load();
    if (end.valid()) end.get();
    for (std::size_t i = 0; i < kWriters; ++i) {
      std::uint64_t got = 0;
      store_->read("main", (live_.pages.size() + i) * kPageBytes, &got, sizeof got);
      if (got < least[i] || got > most[i]) {
        fail(fmt::format("a commit during writes: counter {} is {}, was {} before and {} after", i,
                         got, least[i], most[i]));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (writing_ > 0 && !failed_);
}

std::optional<Load::Snapshot> Load::any_snapshot(std::mt19937_64& random) const {
  const std::lock_guard lock(mutex_);
  if (snapshots_.empty()) return std::nullopt;
  return snapshots_[random() % snapshots_.size()];
}

void Load::read_versions() {
  do {
    const auto snapshot = any_snapshot(reader_random_);
    if (!snapshot) return;
    try {
      read_version(*snapshot);
      ++counts_.versions_read;
    } catch (const Error& error) {
      if (error.code() != Errc::not_found) throw;
      const std::lock_guard lock(mutex_);
      for (const auto& other : snapshots_) {
        if (other.name == snapshot->name) throw;  // it was not removed
      }
    }
  } while (writing_ > 0 && !failed_);
}

void Load::read_version(const Snapshot& snapshot) {
  const Region version = store_->open_version(snapshot.name, region_options());
  const Content& content = *snapshot.content;
  if (reader_random_() % 8 == 0) {
    check_all(content, version.data(), snapshot.name);
  } else {
    for (int i = 0; i < 200; ++i) {
      check_page(content, version.data(), reader_random_() % content.page_count(), snapshot.name);
    }
  }
  std::array<std::uint64_t, kWordsPerPage> words{};
  const std::uint64_t at = reader_random_() % content.pages.size();
  store_->read(snapshot.name, at * kPageBytes, words.data(), kPageBytes);
  if (const auto wrong = first_wrong_word(words.data(), content.pages[at])) {
    fail(fmt::format("{} by Store::read: page {}, word {} is {:#x}", snapshot.name, at, *wrong,
                     words[*wrong]));
  }
}

// Removes the oldest snapshot or, now and then, another one.
void Load::collect() {
  do {
    std::string name;
    {
      const std::lock_guard lock(mutex_);
      if (snapshots_.size() > options_.snapshots_kept) {
        const std::size_t which = names_ % 3 == 0 ? snapshots_.size() / 2 : 0;
        name = snapshots_[which].name;
        snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    if (!name.empty()) {
      store_->remove_snapshot(name);
      ++counts_.removals;
    }
    collect_garbage(counts_.collections % 16 == 15);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  } while (writing_ > 0 && !failed_);
}

void Load::collect_garbage(bool recompress) {
  GcOptions options;
  options.recompress_level = recompress ? 1 : 0;
  try {
    const GcReport report = store_->collect_garbage(options);
    counts_.freed_bytes += report.freed_bytes;
    if (report.recompressed.bytes_after < report.recompressed.bytes_before) {
      counts_.saved_bytes += report.recompressed.bytes_before - report.recompressed.bytes_after;
    }
    ++counts_.collections;
  } catch (const Error& error) {
    // The call's timeout is a few seconds, and a commit that it waits for may take longer on a busy
    // machine.
    if (error.code() != Errc::busy) throw;
    ++counts_.collections_refused;
  }
}

// Half of them continue concurrently with the next steps.
void Load::commit() {
  if (pending_.valid()) pending_.get();
  if (counts_.commits++ % 2 == 0) {
    region_.commit();
  } else {
    pending_ = region_.commit_async();
  }
  committed_ = live_;
}

void Load::snapshot() {
  const std::string name = fmt::format("s{}", ++names_);
  region_.snapshot(name);
  ++counts_.snapshots;
  committed_ = live_;
  auto content = std::make_shared<const Content>(live_);
  const std::lock_guard lock(mutex_);
  snapshots_.push_back({name, std::move(content)});
}

void Load::take_over(const Content& content) {
  live_ = content;
  for (std::size_t i = 0; i < kWriters; ++i) {
    progress_[i].begun = progress_[i].done = live_.counters[i];
  }
}

void Load::rollback() {
  region_.rollback();
  ++counts_.rollbacks;
  take_over(committed_);
  check_all(live_, region_.data(), "after a rollback");
}

// Without a commit: the stores since the last one are lost.
void Load::reopen_region() {
  region_.close();
  open_region();
  ++counts_.reopenings;
  take_over(committed_);
  check_all(live_, region_.data(), "after closing without a commit");
}

void Load::reopen_store(const std::function<void()>& while_closed) {
  region_.close();
  region_ = Region();
  collect_garbage(true);  // packs that are otherwise in use
  store_.reset();
  while_closed();
  store_.emplace(Store::open(options_.directory));
  open_region();
  ++counts_.reopenings;
  check_all(live_, region_.data(), "after reopening the store");
}

// Another branch from an old version, with its own stores, and removed again.
void Load::use_a_branch(std::uint64_t number) {
  const auto from = any_snapshot(random_);
  const std::string name = fmt::format("b{}", number);
  store_->create_branch(name, from->name);
  {
    Region branch = store_->open_region(name, region_options());
    Content content = *from->content;
    auto* const words = static_cast<std::uint64_t*>(branch.data());
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t at = random_() % content.pages.size();
      const PageSeeds next = next_seeds(random_, content.pages[at]);
      check_page(content, words, at, name);
      store_page(words + at * kWordsPerPage, content.pages[at], next);
      content.pages[at] = next;
    }
    branch.commit();
    branch.close();
    branch = store_->open_version(name, region_options());
    check_all(content, branch.data(), name);
  }
  store_->remove_branch(name);
}

std::uint64_t Load::model_bytes() const {
  return (snapshots_.size() + 2) * live_.pages.size() * sizeof(PageSeeds);
}

void Load::finish() {
  region_.close();
  region_ = Region();
  store_.emplace(Store::open(options_.directory));
  const VerifyReport report = store_->verify({.read_data = true});
  if (!report.damages.empty()) {
    fail(fmt::format("{} damages, the first: {}: {}", report.damages.size(),
                     report.damages[0].object, report.damages[0].reason));
  }
  for (const Snapshot& snapshot : snapshots_) {
    const Region version = store_->open_version(snapshot.name, region_options());
    check_all(*snapshot.content, version.data(), snapshot.name);
  }
  const Region head = store_->open_version("main", region_options());
  check_all(committed_, head.data(), "main, at the end");
  if (report.versions != snapshots_.size() + 1) {
    fail(fmt::format("{} versions, not {}", report.versions, snapshots_.size() + 1));
  }
}

}  // namespace vellum::test
