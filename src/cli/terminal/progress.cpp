// cli/terminal/progress.cpp: the progress line.
#include "cli/terminal/progress.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/terminal/output.hpp"

namespace vellum::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr double kMinSecondsForRate = 1.0;

// A failed write of the progress line does not matter.
void to_stderr(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string time_left(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s left", std::max(1.0, seconds));
  if (seconds < 100 * 60) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.0f} h left", seconds / 3600);
}

std::string amount(std::uint64_t value, std::string_view unit) {
  return unit == "bytes" ? human_bytes(value) : fmt::format("{}", value);
}

}  // namespace

struct ProgressMeter::State {
  std::string what;
  std::mutex mutex;
  Clock::time_point start = Clock::now();
  Clock::time_point last_shown{};
  bool shown = false;

  std::string line(const Progress& progress, Clock::time_point now) const {
    const std::string_view unit = progress.unit == nullptr ? "" : progress.unit;
    std::string text = fmt::format("{}: {}", what, amount(progress.done, unit));
    if (progress.total > 0) {
      const double share =
          std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(progress.total));
      text += fmt::format(" of {} ({:.0f} %)", amount(progress.total, unit), 100 * share);
    }
    if (unit != "bytes") {
      return text + fmt::format(" {}", unit);
    }
    const double seconds = std::chrono::duration<double>(now - start).count();
    if (seconds >= kMinSecondsForRate) {
      const double rate = static_cast<double>(progress.done) / seconds;
      text += fmt::format(", {}/s", human_bytes(static_cast<std::uint64_t>(rate)));
      if (progress.done > 0 && progress.total > progress.done) {
        text += ", " + time_left(static_cast<double>(progress.total - progress.done) / rate);
      }
    }
    return text;
  }

  void show(const Progress& progress) {
    const std::lock_guard lock(mutex);
    const Clock::time_point now = Clock::now();
    if (shown && now - last_shown < kInterval) {
      return;
    }
    shown = true;
    last_shown = now;
    to_stderr("\r" + line(progress, now) + "\x1b[K");
  }
};

ProgressMeter::ProgressMeter(std::string what, bool wanted) {
  if (wanted && ::isatty(STDERR_FILENO) == 1) {
    state_ = std::make_unique<State>();
    state_->what = std::move(what);
  }
}

ProgressMeter::~ProgressMeter() {
  if (state_ && state_->shown) {
    to_stderr("\r\x1b[K");
  }
}

ProgressFn ProgressMeter::callback() {
  if (!state_) {
    return nullptr;
  }
  return [state = state_.get()](const Progress& progress) { state->show(progress); };
}

}  // namespace vellum::cli
