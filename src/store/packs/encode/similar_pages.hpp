// store/packs/encode/similar_pages.hpp: recent pages of a pack, found by similar content.
//
// A delta compares a page only with its own earlier content. If content moves to another page, or
// to another offset in a page, it is stored again. This class finds stored pages that share
// stretches with the pages of a block. A page has a few features: the smallest hashes of 32-byte
// stretches whose offsets are chosen by the content ("min-wise" sampling, as in Odess: Zou et al.,
// TOS 2022). Therefore a feature does not depend on the offset of its content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/records/based_pages.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// Threads: several may find() at once, but not concurrently with other calls.
class SimilarPages {
 public:
  static constexpr std::size_t kFeatures = 16;
  static constexpr std::size_t kMaxPages = 4096;  // 16 MiB of content
  static constexpr std::size_t kSeldomOneIn = 4;

  // The features of the pages of a block.
  class Sketch {
   public:
    Sketch() = default;
    explicit Sketch(std::span<const std::byte> raw);

   private:
    friend class SimilarPages;
    std::vector<std::array<std::uint32_t, kFeatures>> pages_;  // 0: none
  };

  SimilarPages() = default;
  ~SimilarPages() { clear(); }
  SimilarPages(const SimilarPages&) = delete;
  SimilarPages& operator=(const SimilarPages&) = delete;

  // Whether to sketch the next block: each block, or one of four after a long time without a use.
  bool is_next_due() noexcept { return often_ || blocks_++ % kSeldomOneIn == 0; }
  // Keeps the content of a record of pages of the pack, and drops the oldest pages. Keeps nothing
  // if the process has used up its memory for such pages. REQUIRES: `sketch` is that of `raw`.
  void note(const format::RecordRef& record, std::span<const std::byte> raw, const Sketch& sketch);
  // The bases that find() returned were used.
  void note_use() noexcept;
  void clear() noexcept;

  struct Bases {
    std::uint64_t pack = 0;               // that contains them
    std::vector<format::BasePage> pages;  // in the order of encode_base_pages()
    std::vector<std::byte> prefix;        // in the layout of base::Compressor::compress_on()
  };
  // Finds base pages for a block. False: too few of its pages resemble kept pages.
  bool find(const Sketch& sketch, Bases& out) const;

 private:
  struct KeptPage {
    format::RecordRef record;
    std::uint32_t slot = 0;
  };
  using Votes = std::unordered_map<std::uint64_t, std::size_t>;  // features shared, by page
  bool is_kept(std::uint64_t number) const noexcept;
  bool vote(const Sketch& sketch, Votes& out) const;
  std::vector<std::size_t> best_of(const Votes& votes) const;

  // Pages are numbered in the order of note(). Page n is at n % kMaxPages.
  std::vector<KeptPage> pages_;
  std::vector<std::byte> contents_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> newest_;  // page of each feature; may be dropped
  bool often_ = true;
  std::size_t blocks_ = 0;
  std::size_t unused_pages_ = 0;  // kept since the last use
};

}  // namespace vellum::store
