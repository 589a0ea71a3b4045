// region/memory/mapped_memory.hpp: engine mapped: a private mapping of the branch's image.
//
// The image is a plain file, as in Privateer 1.0 (Youssef et al., CLUSTER 2021). The kernel brings
// pages in from its page cache; processes that map the same file share them. A written page becomes
// this region's own. Only rollback() and drop_copies() drop it: a drop beside a thread that writes
// would lose stores. The image follows a commit once the commit is durable.
//
// Base copies are the image's pages, seen through a second private mapping. The encoder patches
// them there, invisible to the file; once the commit is durable they are written to the file and
// forgotten. A *foreign* page is one whose image is not the last commit: another program wrote it,
// or a failing disk did not take it. It counts as written until a commit has brought it to the
// image, and its base copy comes from the store.
#pragma once

#include <memory>
#include <vector>

#include "region/kernel/private_pages.hpp"
#include "region/memory/memory.hpp"

namespace vellum::region {

class MappedMemory final : public RegionMemory {
 public:
  MappedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
               PrivatePages::Way best = PrivatePages::Way::written);
  ~MappedMemory() override { stop_service(); }

  Engine engine() const noexcept override { return Engine::mapped; }
  bool make_present(PageNumber first, std::size_t count,
                    store::ReadFailure& failure) noexcept override;
  void advise(PageNumber first, std::size_t count, Advice advice) override;
  // The kernel pages in for system calls, too.
  void pin(PageNumber, std::size_t) override {}
  void unpin(PageNumber, std::size_t) noexcept override {}

  void drop_copies(const std::vector<PageNumber>& pages) override;

  void prepare_commit(std::span<const PageNumber> dirty) override;
  void finish_commit(std::span<const PageNumber> dirty) noexcept override;
  void abandon_commit(std::span<const PageNumber> dirty) noexcept override;
  const std::byte* base_copy_of(PageNumber page) const noexcept override;
  void set_file_bytes(std::optional<std::uint64_t> bytes) noexcept override { file_bytes_ = bytes; }
  void extend_file(std::uint64_t bytes) override { options_.image->extend(bytes); }
  void drop_file_growth(std::uint64_t keep_bytes) override {
    options_.image->drop_growth(keep_bytes);
  }
  std::uint64_t backed_bytes() const noexcept override;
  void note_closed(const format::Version& head) noexcept override;
  void resize(std::uint64_t size_bytes) override;
  void start() override;

  // Only for pages that the file cannot give: an I/O error, or another program has cut the file.
  FaultResult on_fault(const Fault& fault) noexcept override;

 protected:
  // Pages never come in by our own faults.
  int fault_signal() const noexcept override;
  int map_zero(PageNumber, std::size_t) noexcept override { return 0; }
  int map_present(PageNumber, std::size_t) noexcept override { return 0; }
  int resolve_present(PageNumber, bool) noexcept override { return 0; }
  void find_dirty(std::vector<PageNumber>& out) override;
  void find_unfinished(std::vector<PageNumber>& out) override;
  void put_back(const std::vector<PageNumber>& pages) override;
  int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept override;

 private:
  void stage_foreign(std::span<const PageNumber> pages);
  void forget_base_copies(std::span<const PageNumber> pages) noexcept;
  void write_image(std::span<const PageNumber> pages);
  void write_backwards(std::span<const PageNumber> pages);
  bool is_foreign(PageNumber page) const noexcept;

  PrivatePages written_;
  PrivatePages patched_;             // of the alias: the base copies that the encoder has changed
  std::vector<PageNumber> foreign_;  // ascending
  std::vector<PageNumber> staged_;   // foreign pages of the commit at hand
  std::optional<std::uint64_t> file_bytes_;  // size of the image after the commit at hand
  bool complained_ = false;
};

}  // namespace vellum::region
