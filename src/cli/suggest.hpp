// cli/suggest.hpp: what a misspelled word may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vellum/error.hpp"

namespace vellum::cli {

// How many letters have to be put in, left out, exchanged or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" of the candidate that is nearest to the word; empty when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// The same of what an error says is not there: the argument that it names is looked for among the
// names of the store, or among the files of its directory. Never fails.
std::string hint_for_missing(const Error& error, const std::vector<std::string>& arguments,
                             const std::string& store);

}  // namespace vellum::cli
