// The recompression of packs, a part of gc.
#include "store/gc/gc.hpp"

#include <algorithm>
#include <cassert>

#include "base/round_up.hpp"
#include "base/threads/thread_pool.hpp"
#include "store/gc/pack_rewriter.hpp"
#include "store/gc/record_encoder.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

namespace {

constexpr double kMaxUsefulRatio = 0.98;
constexpr std::size_t kSamples = 24;  // records of a pack, for an estimate of the ratio
// The share of a pack's size that must be saved. A pack is rewritten if samples promise a
// twentieth. The new file is published if it saves half of that. An estimate that is slightly too
// good then costs the work once, not in every run.
constexpr std::uint64_t kShareToBegin = 20, kShareToPublish = 40;

constexpr std::uint64_t in_blocks(std::uint64_t bytes) { return base::round_up(bytes, kHoleBytes); }

bool saves_enough(std::uint64_t before, std::uint64_t after, std::uint64_t share) {
  assert(share != 0);
  const std::uint64_t least = std::max(before / share, kHoleBytes);
  return before >= least && in_blocks(after) <= before - least;
}

class Recompression {
 public:
  Recompression(StoreDirectory& store, const Roots& roots, LiveSet& live_set, const Needs& needs,
                const RecompressOptions& options)
      : store_(store),
        roots_(roots),
        live_set_(live_set),
        needs_(needs),
        options_(options),
        pool_(base::processors() - 1) {}

  RecompressReport run() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> packs;  // with their sizes
    for (const std::uint64_t pack : roots_.packs) {
      if (roots_.settled_bytes(pack).has_value() || !needs_.contains(pack)) continue;
      packs.emplace_back(pack, open_file(pack)->size_bytes());
      total_bytes_ += packs.back().second;
    }
    for (const auto& [pack, bytes] : packs) {
      consider(pack);
      done_bytes_ += bytes;
      report_progress(0);
    }
    assert(done_bytes_ == total_bytes_);
    return report_;
  }

 private:
  void report_progress(std::uint64_t more) const {
    if (options_.progress) options_.progress({done_bytes_ + more, total_bytes_, "bytes"});
  }

  std::unique_ptr<base::File> open_file(std::uint64_t pack) const {
    return store_.packs().places().open(pack);
  }

  void consider(std::uint64_t pack) {
    auto plan = plan_pack(store_, pack, needs_.at(pack), live_set_, options_.level);
    if (!plan.has_value()) return;
    const double ratio = plan->recompress ? sampled_ratio(*plan) : 1.0;
    if (plan->recompress && ratio > kMaxUsefulRatio) compress_as_before(*plan);
    const std::uint64_t about = plan->estimated_bytes(ratio);
    if (!saves_enough(plan->allocated_bytes, about, kShareToBegin)) return;
    if (!open_file(pack)->pinned_bytes().empty()) {
      ++report_.packs_in_use;
    } else if (options_.gc == nullptr) {
      count(*plan, in_blocks(about));
    } else {
      rewrite(*plan);
    }
  }

  // For data that the level does not make smaller, for example random numbers. Dropping slots still
  // saves space.
  void compress_as_before(PackPlan& plan) const {
    plan.recompress = false;
    const auto& sb = store_.superblock();
    plan.encode_level = std::min<int>(
        plan.level, base::has_levels(sb.compression) ? sb.compression_level : kMetadataZstdLevel);
  }

  void rewrite(const PackPlan& plan) {
    PackRewriter rewriter(store_, pool_, plan);
    if (!rewriter.write([this](std::uint64_t done) { report_progress(done); })) return;
    if (!saves_enough(plan.allocated_bytes, rewriter.new_bytes(), kShareToPublish)) return;
    if (rewriter.publish(*options_.gc)) {
      count(plan, in_blocks(rewriter.new_bytes()));
    } else {
      ++report_.packs_in_use;
    }
  }

  void count(const PackPlan& plan, std::uint64_t after) {
    ++report_.packs;
    report_.bytes_before += plan.allocated_bytes;
    report_.bytes_after += after;
  }

  // The ratio by which the level shrinks payloads, without the effect of dropped slots.
  double sampled_ratio(const PackPlan& plan) {
    std::vector<const PlannedRecord*> all;
    for (const PlannedRecord& r : plan.records) {
      if (r.has_slots() && r.needed() != 0 && r.durable) all.push_back(&r);
    }
    const std::size_t samples = std::min(all.size(), kSamples);
    if (samples == 0) return 1;
    std::vector<double> before(samples), after(samples);
    std::vector<RecordEncoder> encoders(pool_.workers() + 1);
    const base::File& file = *store_.packs().find(plan.pack);
    pool_.parallel_for(samples, [&](std::size_t i, std::size_t worker) {
      const PlannedRecord& r = *all[i * all.size() / samples];
      const LoadedRecord record = read_record_at(file, r.place, r.type, store_.record_seal());
      if (record.header.items != r.items) return;  // the rewriter reports it
      before[i] = static_cast<double>(r.stored_bytes) * static_cast<double>(r.needed()) /
                  static_cast<double>(r.held);
      after[i] =
          static_cast<double>(encoders[worker].encode(record, r, plan.level, true).stored.size());
    });
    double sum_before = 0, sum_after = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      sum_before += before[i];
      sum_after += after[i];
    }
    return sum_before == 0 ? 1 : sum_after / sum_before;
  }

  StoreDirectory& store_;
  const Roots& roots_;
  LiveSet& live_set_;
  const Needs& needs_;
  const RecompressOptions options_;
  base::ThreadPool pool_;  // not the store's, so that commits do not wait for it
  std::uint64_t done_bytes_ = 0, total_bytes_ = 0;
  RecompressReport report_;
};

}  // namespace

RecompressReport recompress_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, const RecompressOptions& options) {
  assert(live_set.has_slots() && options.level >= 1 && options.level <= kMaxRecompressLevel);
  return Recompression(store, roots, live_set, needs, options).run();
}

}  // namespace vellum::store
