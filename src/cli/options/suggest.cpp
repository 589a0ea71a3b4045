#include "cli/options/suggest.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vellum/store.hpp>

#include "base/files/file.hpp"
#include "cli/terminal/output.hpp"
#include "remote/engine/url.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = 255;  // of a misspelled word

bool is_encrypted(const std::string& store) {
  if (!remote::is_remote_url(store)) return fs::exists(fs::path(store) / "vellum.keys");
  const auto objects = remote::open_object_store(base::posix_fs(), store);
  return remote::read_superblock(*objects).has_keys();
}

// None of an encrypted store: opening it again may ask for its key again.
std::vector<std::string> names_of(const std::string& store) {
  std::vector<std::string> names;
  if (is_encrypted(store)) return names;
  for (const VersionInfo& version : Store::open(store).versions()) names.push_back(version.name);
  return names;
}

// The most similar path in the same directory, in the form of the argument.
std::string nearest_path(const std::string& path) {
  const fs::path wanted(path);
  const fs::path directory = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    names.push_back((wanted.parent_path() / entry.path().filename()).string());
  return did_you_mean(path, names);
}

}  // namespace

// Keeps three rows of the table of Damerau and Levenshtein (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxBytes) return "";
  std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 3)) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate == word || candidate.size() > kMaxBytes) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least || distance >= std::max(word.size(), candidate.size())) continue;
    least = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? "" : fmt::format("; did you mean '{}'?", *nearest);
}

std::string hint_for_missing(const Error& error, const std::vector<std::string>& arguments,
                             const std::string& store) {
  const std::string_view message = error.what();
  try {
    for (const std::string& argument : arguments) {
      if (argument.empty() || argument.starts_with('-')) continue;
      if (message.find("'" + argument + "'") != std::string_view::npos && argument != store)
        return did_you_mean(argument, names_of(store));
      if (message.starts_with(argument + ": ")) return nearest_path(argument);
    }
  } catch (const std::exception&) {  // the error itself says more
  }
  return "";
}

}  // namespace vellum::cli
