// memory/engine/file_memory.hpp: engine mapped: a private mapping of the branch's image.
//
// The image is a plain file, as in Privateer 1.0 (Youssef et al., CLUSTER 2021). The kernel maps
// pages from its page cache; processes that map the same file share them. The first write to a page
// creates a private copy. Only rollback() and drop_copies() drop it: a drop concurrent with a
// writing thread would lose stores. The image follows a commit once the commit is durable.
//
// Base copies are the image's pages in a second private mapping. The encoder patches them there,
// invisible to the file; once the commit is durable they are written to the file and forgotten
// (file_memory_commit.cpp). A *foreign* page has another content in the image than in the last
// commit: another program wrote it, or a write to the image failed. It counts as dirty until a
// commit has written it to the image, and its base copy is read from the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/copies/backing.hpp"
#include "memory/kernel/fault_router.hpp"
#include "memory/kernel/private_pages.hpp"
#include "memory/memory.hpp"

namespace vellum::region {

// Base copies in the image of engine mapped. The alias is a private mapping: patches in it reach
// the image only when they are written to it. The pages are the page cache's, so no pager counts
// them.
class ImageBacking final : public Backing {
 public:
  // The caller closes `image` after this object. Throws Errc::out_of_memory.
  ImageBacking(std::size_t capacity_bytes, int image);

  // A page that equals the image's stays the image's: attaching a large file takes no memory.
  int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept override;
  // Patches stay until show_image().
  void drop_base_copies(format::PageNumber first, std::size_t count) noexcept override {
    forget_base_copies(first, count);
  }
  // Forgets the base copies and their patches.
  void show_image(format::PageNumber first, std::size_t count) noexcept;

 private:
  void count(std::int64_t) noexcept override {}
};

class FileMemory final : public RegionMemory, public FileBehind, public FaultTarget {
 public:
  // REQUIRES: options.image and options.open_committed are set, and the region is writable.
  FileMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
             PrivatePages::Way best = PrivatePages::Way::written);
  ~FileMemory() override;
  // Opens the range, and routes faults of pages that cannot be read from the file. Once, before the
  // first use.
  void start();

  // RegionMemory.
  Engine engine() const noexcept override { return Engine::mapped; }
  bool serves_system_calls() const noexcept override { return true; }
  bool needs_handlers() const noexcept override { return false; }  // the kernel fills pages
  FileBehind* file_behind() noexcept override { return this; }
  MemoryUse use() noexcept override;
  bool make_present(PageNumber first, std::size_t count,
                    store::ReadFailure& failure) noexcept override;
  bool make_present(std::span<const format::PageRange> ranges,
                    store::ReadFailure& failure) noexcept override;
  void advise(PageNumber first, std::size_t count, Advice advice) override;
  void collect_dirty(std::vector<PageNumber>& out,
                     const std::vector<PageNumber>* known = nullptr) override;
  void discard(const std::vector<PageNumber>& pages) override;
  const std::byte* base_copy_of(PageNumber page) const noexcept override;
  void resize(std::uint64_t size_bytes) override;

  // The kernel owns the pages. It fills them for system calls, too, chooses their size, and evicts
  // them when memory is short. Each page therefore counts as present, none is held or spilled, and
  // none is filled from a source.
  void make_huge(PageNumber, std::size_t) override {}
  void pin(PageNumber, std::size_t) override {}
  void unpin(PageNumber, std::size_t) noexcept override {}
  void hold(PageNumber, std::size_t) noexcept override {}
  void release(PageNumber, std::size_t) noexcept override {}
  bool is_present(PageNumber) const noexcept override { return true; }
  std::size_t untouched_zeros(PageNumber, std::size_t) const noexcept override { return 0; }
  bool holds_nothing(PageNumber) const noexcept override { return false; }
  void stay_within_limit() noexcept override {}
  bool has_spilled() const noexcept override { return false; }
  bool take_spilled(PageNumber, std::byte*, SpillFile::Entry&) override { return false; }
  void give_back(const std::vector<PageNumber>&, std::vector<PageNumber>&) override {}
  void note_newer(PageNumber) noexcept override {}
  void note_commit_end() noexcept override {}
  bool wants_source() const noexcept override { return false; }
  void replace_source(std::shared_ptr<store::PageSource> source,
                      const std::vector<PageNumber>&) override;
  std::vector<format::PageRange> working_set() override { return {}; }

  // FileBehind.
  std::uint64_t backed_bytes() const noexcept override;
  void set_length(std::optional<std::uint64_t> bytes) noexcept override { file_bytes_ = bytes; }
  void extend(std::uint64_t bytes) override { options_.image->extend(bytes); }
  void drop_growth(std::uint64_t keep_bytes) override { options_.image->drop_growth(keep_bytes); }
  void drop_copies(const std::vector<PageNumber>& pages) override;
  bool write_tail(const format::Version& head, std::uint64_t from_bytes,
                  std::uint64_t end_bytes) override;
  bool is_asked_for() const override { return options_.image->is_asked_for(); }
  void prepare_commit(std::span<const PageNumber> dirty) override;
  void finish_commit(std::span<const PageNumber> dirty) noexcept override;
  void abandon_commit(std::span<const PageNumber> dirty) noexcept override;
  void note_closed(const format::Version& head) noexcept override;
  void leave_mapped() noexcept override { range_.leave_mapped(); }

  // FaultTarget. Only for pages that cannot be read from the file: an I/O error, or another program
  // has truncated the file.
  FaultResult on_fault(const Fault& fault) noexcept override;

 private:
  FileMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
             PrivatePages::Way best, const std::shared_ptr<ImageBacking>& base_copies);

  int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept;
  void grow(std::uint64_t old_size, std::uint64_t new_size);
  bool is_foreign(PageNumber page) const noexcept;

  // file_memory_commit.cpp
  void stage_foreign(std::span<const PageNumber> pages);
  void forget_base_copies(std::span<const PageNumber> pages) noexcept;
  void write_image(std::span<const PageNumber> pages);
  void write_backwards(std::span<const PageNumber> pages);

  ImageBacking& backing_;  // base_copies_
  PrivatePages written_;
  std::vector<PageNumber> found_;    // by written_, and not yet reported: a call has failed
  PrivatePages patched_;             // of the alias: base copies that the encoder has patched
  std::vector<PageNumber> foreign_;  // ascending
  std::vector<PageNumber> staged_;   // foreign pages of the current commit
  std::optional<std::uint64_t> file_bytes_;  // size of the image after the current commit
  bool failure_reported_ = false;
};

}  // namespace vellum::region
