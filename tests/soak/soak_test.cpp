// Mixed load for a long time: no store is lost, and memory, mappings, descriptors and threads do
// not grow.
//
// tools/soak.sh runs the long form with VELLUM_SOAK_SECONDS (without it: a fixed number of rounds),
// VELLUM_SOAK_MIB (of the region; a quarter is its limit) and VELLUM_SOAK_DIR.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/temp_directory.hpp"
#include "soak/load_lib.hpp"
#include "soak/resources_lib.hpp"
#include "support/engines.hpp"
#include "support/sanitizers.hpp"

namespace vellum::test {
namespace {

using Clock = std::chrono::steady_clock;

double from_environment(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtod(value, nullptr) : otherwise;
}

// The end of the run: after some time, or else after some rounds; in any case after a minimum
// number of rounds, however slow the machine is.
class Duration {
 public:
  bool over(std::uint64_t rounds) const { return rounds >= kRounds && elapsed() >= seconds_; }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool is_long() const { return seconds_ > 0; }

 private:
  static constexpr std::uint64_t kRounds = kSanitizer ? 32 : 48;  // four times Load::kRoundsACycle
  double seconds_ = from_environment("VELLUM_SOAK_SECONDS", 0);
  Clock::time_point start_ = Clock::now();
};

class Soak : public EngineTest {
 protected:
  static std::filesystem::path directory() {
    const char* value = std::getenv("VELLUM_SOAK_DIR");
    return value != nullptr ? std::filesystem::path(value) : memory_directory();
  }

  LoadOptions options() const {
    LoadOptions out;
    out.engine = GetParam();
    out.directory = directory_ / "store";
    const double mib = from_environment("VELLUM_SOAK_MIB", kSanitizer ? 2 : 8);
    out.region_bytes = static_cast<std::uint64_t>(mib) << 20;
    out.limit_bytes = out.region_bytes / 4;
    out.pack_bytes = std::max<std::uint64_t>(out.region_bytes / 4, 1u << 20);
    if (kSanitizer) out.snapshots_kept = 3;
    out.steps_a_round = out.region_bytes / 4096 / (kSanitizer ? 16 : 10);
    return out;
  }

  void SetUp() override {
    // An arena for each thread would fill slowly and look like growth.
    mallopt(M_ARENA_MAX, 2);
    EngineTest::SetUp();
  }

  // The test's own memory, which depends on the number of snapshots.
  static Resources without_model(Resources sample, const Load& load) {
    sample.heap_kib -= std::min(sample.heap_kib, load.model_bytes() >> 10);
    return sample;
  }

  // Everything is closed; malloc's free memory belongs to nothing.
  void sample_closed(const Load& load) {
    malloc_trim(0);
    last_closed_ = without_model(Resources::now(directory_ / "store"), load);
    closed_.add(last_closed_);
  }

  void print_progress(std::uint64_t round, const Load& load, const Resources& sample) {
    static const double every = from_environment("VELLUM_SOAK_PRINT", 60);
    if (!duration_.is_long() || duration_.elapsed() < printed_ + every) return;
    printed_ = duration_.elapsed();
    fmt::print("{:>7} {:>7.0f} s, round {}: {}, {} MiB on the disk; {}\n", engine_name(GetParam()),
               printed_, round, sample.to_string(), last_closed_.store_kib >> 10,
               load.counts().to_string());
    std::fflush(stdout);
  }

  TempDirectory directory_{directory()};
  Duration duration_;
  Trend open_, closed_;
  Resources last_closed_;
  double printed_ = 0;
};

// Of the median of a quarter. Open: memory and mappings are those of the round's work. Closed: only
// the memory of malloc and of the threads' stacks remains.
constexpr Tolerance kOpen{16384, 1024, 256, 16, 4, 0, 0.05};
constexpr double kNoLimit = 1e9;  // a sanitizer keeps freed memory
constexpr Tolerance kClosed{
    kSanitizer ? kNoLimit : 6144, 256, kSanitizer ? kNoLimit : 16, 0, 0, 4096, 0.1};

TEST_P(Soak, NothingIsLostAndNothingGrows) {
  Load load(options());
  std::uint64_t round = 0;
  for (; !duration_.over(round); ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    ASSERT_NO_THROW(load.round(round, [&] { sample_closed(load); }));
    const Resources sample = without_model(Resources::now(), load);
    open_.add(sample);
    print_progress(round, load, sample);
  }
  ASSERT_NO_THROW(load.finish());
  fmt::print("{}: {} rounds in {:.1f} s: {}\nopen:\n{}closed:\n{}", engine_name(GetParam()), round,
             duration_.elapsed(), load.counts().to_string(), open_.to_string(),
             closed_.to_string());
  if (!kSanitizer) {
    for (const auto& what : open_.growth(kOpen)) ADD_FAILURE() << "open: " << what;
  }
  for (const auto& what : closed_.growth(kClosed)) ADD_FAILURE() << "closed: " << what;
}

VELLUM_BOTH_ENGINES(Soak);

}  // namespace
}  // namespace vellum::test
