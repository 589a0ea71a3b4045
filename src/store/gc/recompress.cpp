#include "store/gc/recompress.hpp"

#include <algorithm>

#include "base/round_up.hpp"
#include "base/threads/processors.hpp"
#include "store/gc/pack_rewriter.hpp"
#include "store/gc/record_encoder.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

namespace {

constexpr double kRatioOfNoUse = 0.98;
constexpr std::size_t kSamples = 24;  // records of a pack that tell whether it is worth the work
// The share of a pack's size that must be saved. Work on a pack begins if samples promise a
// twentieth; once the work is done, half of that is enough. So an estimate that was somewhat too
// good costs the work once, not in every run.
constexpr std::uint64_t kShareToBegin = 20, kShareToPublish = 40;

constexpr std::uint64_t in_blocks(std::uint64_t bytes) { return base::round_up(bytes, kHoleBytes); }

bool worth(std::uint64_t before, std::uint64_t after, std::uint64_t share) {
  const std::uint64_t least = std::max(before / share, kHoleBytes);
  return before >= least && in_blocks(after) <= before - least;
}

class Recompression {
 public:
  Recompression(StoreDirectory& store, const Roots& roots, LiveSet& live_set, const Needs& needs,
                int level, const GcExclusive* gc, const ProgressFn& progress)
      : store_(store),
        roots_(roots),
        live_set_(live_set),
        needs_(needs),
        level_(level),
        gc_(gc),
        progress_(progress),
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
      tell(0);
    }
    return report_;
  }

 private:
  void tell(std::uint64_t more) const {
    if (progress_) progress_({done_bytes_ + more, total_bytes_, "bytes"});
  }

  std::unique_ptr<base::File> open_file(std::uint64_t pack) const {
    return store_.packs().places().open(pack);
  }

  void consider(std::uint64_t pack) {
    auto plan = plan_pack(store_, pack, needs_.at(pack), live_set_, level_);
    if (!plan.has_value()) return;
    const double ratio = plan->recompress ? sampled_ratio(*plan) : 1.0;
    if (plan->recompress && ratio > kRatioOfNoUse) compress_as_before(*plan);
    const std::uint64_t about = plan->estimated_bytes(ratio);
    if (!worth(plan->allocated_bytes, about, kShareToBegin)) return;
    if (!open_file(pack)->pinned_bytes().empty()) {
      ++report_.packs_in_use;
    } else if (gc_ == nullptr) {
      count(*plan, in_blocks(about));
    } else {
      rewrite(*plan);
    }
  }

  // The level makes nothing smaller, for example numbers without a pattern. Dropping slots does.
  void compress_as_before(PackPlan& plan) const {
    plan.recompress = false;
    const auto& sb = store_.superblock();
    plan.encode_level = std::min<int>(
        plan.level, sb.codec == base::Codec::zstd ? sb.codec_level : kMetadataZstdLevel);
  }

  void rewrite(const PackPlan& plan) {
    PackRewriter rewriter(store_, pool_, plan);
    if (!rewriter.write([this](std::uint64_t done) { tell(done); })) return;
    if (!worth(plan.allocated_bytes, rewriter.new_bytes(), kShareToPublish)) return;
    if (rewriter.publish(*gc_)) {
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

  // The ratio by which the level shrinks payloads, apart from dropped slots.
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
      const LoadedRecord record = read_record_at(file, r.place, r.type, store_.checksum_seed());
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
  int level_;
  const GcExclusive* const gc_;  // nullptr: a dry run
  const ProgressFn& progress_;
  base::ThreadPool pool_;  // not the store's: commits do not wait for it
  std::uint64_t done_bytes_ = 0, total_bytes_ = 0;
  RecompressReport report_;
};

}  // namespace

RecompressReport recompress_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, int level, const GcExclusive* gc,
                                  const ProgressFn& progress) {
  return Recompression(store, roots, live_set, needs, level, gc, progress).run();
}

}  // namespace vellum::store
