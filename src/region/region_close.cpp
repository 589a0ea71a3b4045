// Closing a region: its last writes, and its destruction in a child of fork(2).
#include <cassert>
#include <exception>
#include <mutex>
#include <vellum/region.hpp>

#include "base/threads/fork_count.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/working_set_file.hpp"

namespace vellum {

Region::Impl::Impl() : owner(base::fork_count()) {}

// The working set is a hint: closing continues even if it cannot be written.
void Region::Impl::write_working_set() noexcept {
  if (!remembered_as || memory == nullptr) return;
  try {
    store::write_working_set(*core, name, {*remembered_as, memory->working_set()});
  } catch (const std::exception&) {  // no memory for the list
  }
}

// If the store has been moved, nothing is written: its path may hold another store.
void Region::Impl::finish() noexcept {
  background.reset();  // waits for its task
  const bool in_place = writer == nullptr || writer->in_place();
  if (space != nullptr && in_place) space->finish();
  space.reset();
  if (in_place) {
    write_working_set();
    if (memory != nullptr && writer != nullptr) {
      if (auto* const file = memory->file_behind()) file->note_closed(writer->head());
    }
  }
  encoder.reset();
  memory.reset();
  counters.reset();
  cards.reset();
  source.reset();
  writer.reset();
  core.reset();
}

void Region::Impl::close() {
  assert(!closed);
  assert(background == nullptr || background->idle());
  const std::lock_guard alone(inside);
  closed = true;
  finish();
}

Region::Impl::~Impl() {
  if (closed) return;
  if (owner == base::fork_count()) {
    finish();
    return;
  }
  // In a child of fork(2): the branch's files and the mapped memory belong to the parent.
  // NOLINTBEGIN(bugprone-unused-return-value): leaked on purpose.
  static_cast<void>(background.release());
  static_cast<void>(space.release());
  static_cast<void>(encoder.release());
  static_cast<void>(memory.release());
  static_cast<void>(counters.release());
  static_cast<void>(writer.release());
  // NOLINTEND(bugprone-unused-return-value)
}

}  // namespace vellum
