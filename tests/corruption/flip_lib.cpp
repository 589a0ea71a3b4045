#include "corruption/flip_lib.hpp"

#include <algorithm>
#include <cstring>

#include "store/check/check.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::corruption {

using format::kPageBytes;

namespace {

constexpr std::size_t kChunkPages = 16;
constexpr std::size_t kMaxComplaints = 20;

void add(Trace& to, const Trace& from) {
  for (const auto& [path, bytes] : from) {
    auto& all = to[path];
    if (all.size() < bytes.size()) all.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i]) all[i] = true;
    }
  }
}

bool same(const store::ResolvedVersion& a, const store::ResolvedVersion& b) {
  return a.label == b.label && a.is_branch == b.is_branch && a.version == b.version &&
         a.commits == b.commits && a.created_ns == b.created_ns && a.branch == b.branch;
}

std::set<std::string> all_names(const store::StoreDirectory& store) {
  std::set<std::string> out;
  for (const auto& n : store.branch_names()) out.insert(n);
  for (const auto& n : snapshot_names(store)) out.insert(n);
  return out;
}

}  // namespace

FlipLab::FlipLab(Sample sample) : sample_(std::move(sample)) { trace_all(); }

// Each step with its own cache: the trace excludes reads from a cache.
void FlipLab::trace_all() {
  TracingFs fs(*sample_.fs);
  Trace opening_store;
  fs.start(opening_store);
  const auto first = store::StoreDirectory::open(fs, kStorePath);
  names_ = all_names(*first);
  fs.stop();
  for (const auto& name : names_) {
    Version v;
    v.name = name;
    const std::size_t pages = sample_.contents.at(name).size() / kPageBytes;
    for (std::size_t page = 0; page <= pages; page += kChunkPages) {
      const auto store = store::StoreDirectory::open(fs, kStorePath);
      fs.start(v.resolving);
      v.resolved = store::resolve_version(*store, name);
      fs.start(v.opening);
      const auto source =
          store::PageSource::open(*store, v.resolved.version, v.resolved.commits, name);
      Bytes out(kChunkPages * kPageBytes);
      fs.start(v.chunks.emplace_back());
      source->read(page, kChunkPages, out.data());
      fs.stop();
      add(everything_, v.chunks.back());
    }
    add(everything_, v.resolving);
    add(everything_, v.opening);
    versions_.push_back(std::move(v));
  }
  add(everything_, opening_store);
}

std::vector<std::pair<std::string, std::uint64_t>> FlipLab::files() const {
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (const auto& path : sample_.fs->files())
    out.emplace_back(path, sample_.fs->read_file(path).size());
  return out;
}

std::uint64_t FlipLab::total_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [path, bytes] : files()) sum += bytes;
  return sum;
}

// Reads after resolving depend on the result and on other bytes. A version with the same result is
// read again only where a later step reads the byte.
FlipLab::Outcome FlipLab::check_version(store::StoreDirectory& store, const Version& v,
                                        const std::string& path, std::uint64_t at,
                                        std::string& text) {
  const bool resolving = was_read(v.resolving, path, at);
  const bool all = was_read(v.opening, path, at);
  std::vector<std::size_t> chunks;
  for (std::size_t c = 0; c < v.chunks.size(); ++c) {
    if (all || was_read(v.chunks[c], path, at)) chunks.push_back(c);
  }
  if (!resolving && chunks.empty()) return Outcome::exact;
  const auto resolved = store::resolve_version(store, v.name);
  if (!same(resolved, v.resolved)) {
    text = v.name + ": another version than before";
    return Outcome::wrong;
  }
  if (chunks.empty()) return Outcome::exact;
  const Bytes& good = sample_.contents.at(v.name);
  const auto source = store::PageSource::open(store, resolved.version, resolved.commits, v.name);
  Bytes out(kChunkPages * kPageBytes);
  for (const std::size_t c : chunks) {
    source->read(c * kChunkPages, kChunkPages, out.data());
    const std::size_t from = c * kChunkPages * kPageBytes;
    const std::size_t n = from >= good.size() ? 0 : std::min(out.size(), good.size() - from);
    if (source->region_bytes() != good.size() ||
        std::memcmp(out.data(), good.data() + from, n) != 0) {
      text = v.name + ": wrong bytes in chunk " + std::to_string(c);
      return Outcome::wrong;
    }
  }
  return Outcome::exact;
}

FlipLab::Outcome FlipLab::check_with(store::StoreDirectory& store, const std::string& path,
                                     std::uint64_t at, std::string& text) {
  bool error = false;
  for (const auto& v : versions_) {
    try {
      if (check_version(store, v, path, at, text) == Outcome::wrong) return Outcome::wrong;
    } catch (const Error& e) {
      text = e.what();
      error = true;
    }
  }
  return error ? Outcome::error : Outcome::exact;
}

// An open store may have a record from before the flip in its cache. Only its errors count: exact
// reads are repeated through a new store. Most flips are errors, and opening costs more than an
// error.
FlipLab::Outcome FlipLab::check(const std::string& path, std::uint64_t at, std::string& text) {
  if (warm_ != nullptr && path.find("/packs/") != std::string::npos &&
      check_with(*warm_, path, at, text) == Outcome::error) {
    return Outcome::error;
  }
  warm_ = nullptr;
  try {
    auto store = store::StoreDirectory::open(*sample_.fs, kStorePath);
    if (all_names(*store) != names_) {
      text = "other names than before";
      return Outcome::wrong;
    }
    const Outcome outcome = check_with(*store, path, at, text);
    if (outcome == Outcome::error) warm_ = std::move(store);
    return outcome;
  } catch (const Error& e) {
    text = e.what();
    return Outcome::error;
  }
}

void FlipLab::flip(const std::string& path, std::uint64_t at, unsigned bit, bool also_verify,
                   FlipCounts& counts) {
  ++counts.flips;
  const bool read = was_read(everything_, path, at);
  if (!read && !also_verify) {
    ++counts.harmless_unread;
    return;
  }
  const auto mask = static_cast<std::byte>(1u << bit);
  sample_.fs->flip(path, at, mask);
  const auto complain = [&](const std::string& what) {
    if (counts.complaints.size() < kMaxComplaints) {
      counts.complaints.push_back(path + " byte " + std::to_string(at) + " bit " +
                                  std::to_string(bit) + ": " + what);
    }
  };
  std::string text;
  const Outcome outcome = read ? check(path, at, text) : Outcome::exact;
  if (outcome == Outcome::wrong) {
    ++counts.silent;
    complain(text);
  } else if (outcome == Outcome::error) {
    ++counts.detected;
    // The superblock represents the store: an error that names the store names it.
    const std::string named = path.ends_with("vellum.store") ? kStorePath : path;
    if (text.find(named) == std::string::npos) {
      ++counts.detected_unnamed;
      complain("the error does not name the file: " + text);
    }
  } else {
    ++(read ? counts.harmless_read : counts.harmless_unread);
  }
  if (also_verify) {
    ++counts.verified;
    bool found = false;
    try {
      const auto store = store::StoreDirectory::open(*sample_.fs, kStorePath);
      for (const auto& d : store::verify_store(*store, true, nullptr).damages) {
        found |= d.object.find(path) != std::string::npos;
      }
    } catch (const Error&) {
      found = true;
    }
    if (outcome == Outcome::error && !found) {
      ++counts.verify_missed;
      complain("verify does not name it");
    }
  }
  sample_.fs->flip(path, at, mask);
}

}  // namespace vellum::corruption
