// Flips single bits of a store: each flip must be found (an error that names the file) or be
// harmless (every version reads bit-exact). Anything else is silent corruption.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "corruption/sample_lib.hpp"
#include "corruption/tracing_fs.hpp"

namespace vellum::corruption {

struct FlipCounts {
  std::uint64_t flips = 0;
  std::uint64_t detected = 0;          // an error while opening or reading
  std::uint64_t detected_unnamed = 0;  // of these, errors that do not name the file
  std::uint64_t harmless_unread = 0;   // the byte is never read
  std::uint64_t harmless_read = 0;     // read, and every version is still exact
  std::uint64_t silent = 0;
  std::uint64_t verified = 0;           // flips on which verify ran as well
  std::uint64_t verify_missed = 0;      // reading found it, verify did not
  std::vector<std::string> complaints;  // the first few silent or missed ones
};

class FlipLab {
 public:
  explicit FlipLab(Sample sample);
  // Every file with its size.
  std::vector<std::pair<std::string, std::uint64_t>> files() const;
  std::uint64_t total_bytes() const;
  void flip(const std::string& path, std::uint64_t at, unsigned bit, bool also_verify,
            FlipCounts& counts);

 private:
  struct Version {
    std::string name;
    store::ResolvedVersion resolved;
    Trace resolving;            // reading the ref or the journal
    Trace opening;              // its source: packs, roots of runs
    std::vector<Trace> chunks;  // reading 16 pages each
  };
  enum class Outcome { exact, error, wrong };
  Outcome check(const std::string& path, std::uint64_t at, std::string& text);
  Outcome check_with(store::StoreDirectory& store, const std::string& path, std::uint64_t at,
                     std::string& text);
  Outcome check_version(store::StoreDirectory& store, const Version& v, const std::string& path,
                        std::uint64_t at, std::string& text);
  void trace_all();

  Sample sample_;
  Trace everything_;
  std::vector<Version> versions_;
  std::set<std::string> names_;
  std::shared_ptr<store::StoreDirectory>
      warm_;  // opened while something was corrupted; see check()
};

}  // namespace vellum::corruption
