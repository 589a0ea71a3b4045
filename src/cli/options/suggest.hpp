// cli/options/suggest.hpp: suggestions for misspelled words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vellum/error.hpp"

namespace vellum::cli {

// The number of letters to insert, delete, replace, or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" for the candidate most similar to the word; empty if none is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// The same for an error about a missing object: compares the argument in the error with the names
// of the store, or with the files of its directory. Never fails.
std::string hint_for_missing(const Error& error, const std::vector<std::string>& arguments,
                             const std::string& store);

}  // namespace vellum::cli
