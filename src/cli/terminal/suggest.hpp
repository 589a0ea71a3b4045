// cli/terminal/suggest.hpp: suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vellum/error.hpp"

namespace vellum::cli {

// The number of letters to insert, delete, replace, or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" for the candidate nearest to the word; empty if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// The same for an error about something missing: looks for the argument that the error names among
// the names of the store, or among the files of its directory. Never fails.
std::string hint_for_missing(const Error& error, const std::vector<std::string>& arguments,
                             const std::string& store);

}  // namespace vellum::cli
