// Sequences of large commits that repeat what the store holds: of other branches, of older versions
// and of removed versions. Such a commit refers to pages instead of storing them. Where content
// has moved, records are based on pages of other records.
#pragma once

#include "crash/session_lib.hpp"

namespace vellum::crash {

// Enough pages for a commit to look for them in the store.
inline constexpr std::size_t kRepeatedPages = 264;

// The opening steps throw std::logic_error when their commits find nothing.
void run_repeats(Session& session, std::uint64_t seed, std::size_t steps);

// After a call has failed, and the program that made it has ended: every content that it may have
// written is committed again, twice over, by writers that know only what they find. With `without`,
// the branch whose commit failed is removed first.
void repeat_after_failure(Session& session, bool without);

// Where the region is large enough for a commit to look for its pages: they become those of one of
// the store's versions. For what comes after a crash.
void repeat_a_version(Pages& pages, store::StoreDirectory& store, const StoreState& state,
                      std::uint64_t choice);

// All pages of the region get numbered content, `content` decides which.
void put(Pages& pages, std::uint64_t content);

}  // namespace vellum::crash
