// store/packs/encode/similar_pages.hpp: pages that a pack got lately, found again by their content.
//
// Content that moves to another page, or to another place in a page, is stored again: a delta knows
// only the page itself. This finds stored pages that share stretches with the pages of a block. A
// page has a few features: hashes of 32 bytes behind places that the content itself chooses, the
// smallest of them ("min-wise" sampling, as in Odess: Zou et al., TOS 2022). A place moves with its
// content.
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

// Threads: several may find() at once. Nobody else is inside meanwhile.
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

  // Whether the next block is worth a sketch: each, or one of four where nothing was found for long.
  bool is_next_due() noexcept { return often_ || blocks_++ % kSeldomOneIn == 0; }
  // Keeps the content of a record of pages of the pack, and forgets the oldest pages. Where all such
  // memory of the process is used up, it keeps nothing.
  void note(const format::RecordRef& record, std::span<const std::byte> raw, const Sketch& sketch);
  // The bases that find() gave have saved what they were to save.
  void note_use() noexcept;
  void clear() noexcept;

  struct Bases {
    std::uint64_t pack = 0;               // that has them
    std::vector<format::BasePage> pages;  // as encode_base_pages() wants them
    std::vector<std::byte> prefix;        // as base::Compressor::compress_on() wants it
  };
  // Finds base pages for a block. False: too few of its pages resemble any that are kept.
  bool find(const Sketch& sketch, Bases& out) const;

 private:
  struct Page {
    format::RecordRef record;
    std::uint32_t slot = 0;
  };
  using Votes = std::unordered_map<std::uint64_t, std::size_t>;  // features shared, by page
  bool is_kept(std::uint64_t number) const noexcept;
  bool vote(const Sketch& sketch, Votes& out) const;
  std::vector<std::size_t> best_of(const Votes& votes) const;

  // Pages are numbered as they come. Page n is at n % kMaxPages.
  std::vector<Page> pages_;
  std::vector<std::byte> contents_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> newest_;  // page of each feature; may be gone
  bool often_ = true;
  std::size_t blocks_ = 0;
  std::size_t unused_pages_ = 0;  // that were kept since the last use
};

}  // namespace vellum::store
