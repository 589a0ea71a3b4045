#include "power/cuts_lib.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include "power/image_lib.hpp"

namespace vellum::power {

namespace {

class Planner {
 public:
  Planner(const BlockLog& log, const FileSystem& system, std::uint64_t seed)
      : log_(log), entries_(log.entries()), system_(system), random_(seed) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= entries_.size(); ++i) {
      epoch_begin_.push_back(begin);
      if (i < entries_.size() && entries_[i].is_flush()) begin = i + 1;
    }
  }

  std::vector<Cut> plan(std::size_t most) {
    add_certain(most - most / 3);
    // Small logs have fewer images than requested.
    for (std::size_t tries = 0; cuts_.size() < most && tries < 4 * most; ++tries) add_sample();
    std::sort(cuts_.begin(), cuts_.end(), [](const Cut& a, const Cut& b) { return a.at < b.at; });
    return std::move(cuts_);
  }

 private:
  bool flush_at(std::size_t at) const { return at == entries_.size() || entries_[at].is_flush(); }

  void add_certain(std::size_t most) {
    std::vector<Cut> all;
    for (std::size_t at = 0; at <= entries_.size(); ++at) {
      if (flush_at(at)) all.push_back({at, {}, "nothing since the flush"});
      all.push_back({at, everything(at), flush_at(at) ? "all before the flush" : "prefix"});
    }
    const std::size_t step = std::max<std::size_t>(1, (all.size() + most - 1) / most);
    for (std::size_t i = 0; i < all.size(); i += step) add(std::move(all[i]));
  }

  std::vector<PartialWrite> everything(std::size_t at) const {
    std::vector<PartialWrite> out;
    for (std::size_t i = epoch_begin_[at]; i < at; ++i) out.push_back({i, {}});
    return out;
  }

  void add_sample() {
    const std::size_t at = below(entries_.size() + 1);
    const std::size_t writes = at - epoch_begin_[at];
    if (writes == 0) return;
    constexpr std::array<std::size_t, 3> kPercent{50, 85, 15};
    const std::size_t percent = kPercent[below(kPercent.size())];
    Cut cut{at, {}, "subset"};
    for (PartialWrite& piece : everything(at)) {
      if (below(100) < percent) cut.pieces.push_back(std::move(piece));
    }
    if (!cut.pieces.empty() && below(2) == 0) tear(cut);
    add(std::move(cut));
  }

  void tear(Cut& cut) {
    const std::size_t count = 1 + below(std::min<std::size_t>(3, cut.pieces.size()));
    for (std::size_t i = 0; i < count; ++i) {
      PartialWrite& piece = cut.pieces[below(cut.pieces.size())];
      const LogEntry& write = entries_[piece.entry];
      const std::size_t sectors = (write.bytes.size() + kSectorBytes - 1) / kSectorBytes;
      if (sectors < 2 || !piece.sectors.empty() || must_be_whole(write)) continue;
      piece.sectors.resize(sectors);
      const bool prefix = below(2) == 0;
      const std::size_t border = below(sectors);
      for (std::size_t s = 0; s < sectors; ++s) {
        piece.sectors[s] = prefix ? s < border : below(2) == 0;
      }
      cut.kind = "torn";
    }
  }

  bool must_be_whole(const LogEntry& write) const {
    return write.header.at_bytes < system_.whole_at_bytes + system_.whole_bytes &&
           write.header.at_bytes + write.bytes.size() > system_.whole_at_bytes;
  }

  // The identity of an image: its sectors and its allowed states.
  using Key = std::tuple<std::size_t, std::uint64_t, std::uint64_t, std::vector<std::size_t>>;
  void add(Cut cut) {
    const LogHeader& header = log_.before(cut.at);
    Key key{epoch_begin_[cut.at], header.begun, header.returned, {}};
    auto& pieces = std::get<3>(key);
    for (const PartialWrite& piece : cut.pieces) {
      pieces.push_back(piece.entry);
      pieces.push_back(piece.sectors.size());
      for (const bool sector : piece.sectors) pieces.push_back(sector ? 1 : 0);
    }
    if (seen_.insert(std::move(key)).second) cuts_.push_back(std::move(cut));
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const BlockLog& log_;
  const std::vector<LogEntry>& entries_;
  const FileSystem& system_;
  std::mt19937_64 random_;
  std::vector<std::size_t> epoch_begin_;  // for each place in the log: after the last flush
  std::vector<Cut> cuts_;
  std::set<Key> seen_;
};

}  // namespace

std::vector<Cut> plan_cuts(const BlockLog& log, const FileSystem& system, std::size_t most,
                           std::uint64_t seed) {
  return Planner(log, system, seed).plan(most);
}

}  // namespace vellum::power
