// Sequences of large commits that repeat content of the store: of other branches, of older versions
// and of removed versions. Such commits refer to pages instead of storing them. Where content has
// moved, records are based on pages of other records.
#pragma once

#include "crash/session_lib.hpp"

namespace vellum::crash {

// Enough pages for a commit to look for them in the store.
inline constexpr std::size_t kRepeatedPages = 264;

// The opening steps throw std::logic_error when their commits find no page.
void run_repeats(Session& session, std::uint64_t seed, std::size_t steps);

// After a call has failed and its program has ended: commits every content that the program may
// have written again, twice, by new writers. With `without`, removes the branch of the failed
// commit first.
void repeat_after_failure(Session& session, bool without);

// Replaces the region's pages by those of one of the store's versions, where the region is large
// enough for a commit to look them up. For steps after a crash.
void repeat_a_version(Pages& pages, store::StoreDirectory& store, const StoreState& state,
                      std::uint64_t choice);

// Fills all pages of the region with numbered content, selected by `content`.
void put(Pages& pages, std::uint64_t content);

}  // namespace vellum::crash
