// Shared parts of the tests of the store layer: a temporary directory, a model of
// a region, and commits of a changed model.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/page_map/page_source.hpp"
#include "vellum/error.hpp"

namespace vellum::store::test {

using format::kPageBytes;
using format::PageNumber;

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vellum-store-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TempDirectory() {
    std::error_code ignored;
    for (const auto& e : std::filesystem::recursive_directory_iterator(path_, ignored)) {
      if (e.is_directory(ignored)) {
        std::filesystem::permissions(e.path(), std::filesystem::perms::owner_all, ignored);
      }
    }
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

inline void copy_directory(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// Runs `body`, which must throw a vellum::Error with this code; returns its text.
inline std::string error_text(Errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The file of a new journal.
inline std::vector<std::byte> whole_journal(const format::JournalHeader& header,
                                            const format::Version& base) {
  auto bytes = new_journal_start(header, base);
  bytes.resize(static_cast<std::size_t>(journal_bytes(header.half_bytes)));
  return bytes;
}

inline format::Superblock small_options() {
  format::Superblock sb;
  sb.block_bytes = 16u << 10;
  sb.journal_half_bytes = 64u << 10;
  return sb;
}

// Journals of any size then have checkpoints in the background; `in_call`: within the commit that
// starts one, which makes the order of calls deterministic.
inline void use_background_checkpoints(StoreDirectory& store, bool in_call = true) {
  WriterPolicy policy;
  policy.checkpoints = {0, in_call};
  store.set_writer_policy(policy);
}

// A region as plain memory, with its changes since the last commit.
class Model {
 public:
  explicit Model(std::size_t pages) : bytes(pages * kPageBytes), old_(bytes) {}
  std::size_t pages() const { return bytes.size() / kPageBytes; }
  std::byte* page(PageNumber p) { return bytes.data() + p * kPageBytes; }
  const std::byte* page(PageNumber p) const { return bytes.data() + p * kPageBytes; }
  void grow(std::size_t to_pages) {
    bytes.resize(to_pages * kPageBytes);
    old_.resize(to_pages * kPageBytes);
  }
  void store64(PageNumber p, std::size_t offset, std::uint64_t value) {
    std::memcpy(page(p) + offset, &value, sizeof value);
    touched.insert(p);
  }
  void fill(PageNumber p, std::mt19937_64& random) {
    for (std::size_t i = 0; i < kPageBytes; i += 8) {
      store64(p, i, random() % 16 == 0 ? random() : i);
    }
  }
  // It is incompressible, and no other page resembles it.
  void fill_noise(PageNumber p, std::mt19937_64& random) {
    for (std::size_t i = 0; i < kPageBytes; i += 8) store64(p, i, random());
  }
  void zero(PageNumber p) {
    std::memset(page(p), 0, kPageBytes);
    touched.insert(p);
  }

  // The changes since the last call, in the form of a commit: each page in one of the three ways.
  PageWrites take(std::size_t block_pages, base::Compressor& compressor) {
    PageWrites out;
    PageBlock block;
    std::vector<std::byte> raw;
    const auto flush = [&] {
      if (block.pages.empty()) return;
      block.stored.resize(base::compress_bound(base::Compression::zstd, raw.size()));
      const auto n = compressor.compress(base::Compression::zstd, 1, raw, block.stored);
      block.stored.resize(n);
      block.codec = base::Compression::zstd;
      if (n == 0 || n >= raw.size()) {
        block.stored = raw;
        block.codec = base::Compression::none;
      }
      out.blocks.push_back(std::move(block));
      block = {};
      raw.clear();
    };
    for (const PageNumber p : touched) {
      const std::byte* now = page(p);
      std::byte* old = old_.data() + p * kPageBytes;
      const bool zero =
          std::all_of(now, now + kPageBytes, [](std::byte b) { return b == std::byte{}; });
      if (zero) {
        if (std::memcmp(old, now, kPageBytes) != 0) out.zeros.push_back(p);
      } else if (out.deltas.add_difference(p, old, now) &&
                 out.deltas.last_cost_bytes() > kPageBytes / 3) {
        out.deltas.pop_back();
        block.pages.push_back(p);
        raw.insert(raw.end(), now, now + kPageBytes);
        if (block.pages.size() == block_pages) flush();
      }
      std::memcpy(old, now, kPageBytes);
    }
    flush();
    touched.clear();
    return out;
  }

  std::vector<std::byte> bytes;
  std::set<PageNumber> touched;

 private:
  std::vector<std::byte> old_;
};

// A small commit, as BranchWriter writes it.
inline void append_commit(JournalWriter& writer, format::Payload payload) {
  format::FrameBuffer frame(payload);
  writer.write_commit(frame);
  writer.sync_commit();
}

inline format::CommitInfo meta_for(const Model& model, const std::string& message = "") {
  return {1, model.bytes.size(), 0, message};
}

inline CommitCost commit(BranchWriter& writer, Model& model, bool checkpoint,
                         std::size_t block_pages = 4) {
  thread_local base::Compressor compressor;
  auto c = writer.begin();
  c->add(model.take(block_pages, compressor));
  return c->finish(meta_for(model), checkpoint);
}

inline std::shared_ptr<PageSource> open_version(StoreDirectory& store, const std::string& name) {
  ResolvedVersion v = resolve_version(store, name);
  return PageSource::open(store, v.version, v.commits, v.label + " of " + store.path());
}

// Compares all of a version, in steps of `step` pages, and checks zeros_from().
inline void expect_same(const PageSource& source, const std::vector<std::byte>& bytes,
                        std::size_t step = 16) {
  ASSERT_EQ(source.region_bytes(), bytes.size()) << source.label();
  const std::size_t pages = bytes.size() / kPageBytes;
  std::vector<std::byte> buffer(step * kPageBytes);
  for (std::size_t p = 0; p < pages; p += step) {
    const std::size_t n = std::min(step, pages - p);
    source.read(p, n, buffer.data());
    if (std::memcmp(buffer.data(), bytes.data() + p * kPageBytes, n * kPageBytes) == 0) continue;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(0, std::memcmp(buffer.data() + i * kPageBytes, bytes.data() + (p + i) * kPageBytes,
                               kPageBytes))
          << source.label() << " page " << p + i;
    }
  }
  const auto is_zero = [&](std::size_t p) {
    const auto* at = bytes.data() + p * kPageBytes;
    return std::all_of(at, at + kPageBytes, [](std::byte b) { return b == std::byte{}; });
  };
  for (std::size_t p = 0; p < pages; ++p) {
    const std::size_t n = source.zeros_from(p, 64);
    for (std::size_t i = p; i < std::min(pages, p + n); ++i) {
      ASSERT_TRUE(is_zero(i)) << source.label() << " zeros_from " << p << " + " << n;
    }
  }
}

}  // namespace vellum::store::test
