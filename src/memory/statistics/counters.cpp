#include "memory/statistics/counters.hpp"

#include <algorithm>

namespace vellum::region {
namespace {

template <std::size_t size>
void copy_text(std::array<char, size>& to, const std::string& from) noexcept {
  std::copy_n(from.data(), std::min(from.size(), size - 1), to.data());
}

std::uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

}  // namespace

Counters::Counters(const std::string& store, const std::string& version, bool writable) noexcept
    : page_(statistics::ProcessPage::get()) {
  if (page_ != nullptr) slot_ = page_->claim();
  if (slot_ == nullptr) return;
  copy_text(slot_->store, store);
  copy_text(slot_->version, version);
  slot_->writable = writable ? 1 : 0;
}

Counters::~Counters() {
  if (slot_ != nullptr) page_->release(*slot_);
}

void Counters::note_shape(Engine engine, bool counts_dirty, const void* address,
                          std::uint64_t region_bytes) noexcept {
  if (slot_ == nullptr) return;
  slot_->counts_dirty = counts_dirty ? 1 : 0;
  slot_->engine = static_cast<std::uint32_t>(engine);
  set(slot_->address, reinterpret_cast<std::uintptr_t>(address));
  set(slot_->region_bytes, region_bytes);
  page_->publish(*slot_);
}

void Counters::note_size(std::uint64_t region_bytes) noexcept {
  if (slot_ != nullptr) set(slot_->region_bytes, region_bytes);
}

void Counters::note_commit(const CommitReport& report, std::uint64_t region_bytes,
                           std::uint64_t backlog_bytes) noexcept {
  if (slot_ == nullptr) return;
  set(slot_->region_bytes, region_bytes);
  set(slot_->backlog_bytes, backlog_bytes);
  add(slot_->commits, 1);
  add(slot_->pages_dirty, report.pages_dirty);
  add(slot_->pages_changed, report.pages_changed);
  add(slot_->bytes_written, report.bytes_written);
  add(slot_->commit_ns, nanoseconds(report.total_time));
  add(slot_->flush_ns, nanoseconds(report.flush_time));
}

}  // namespace vellum::region
