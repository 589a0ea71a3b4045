// interfaces/lmdb/transaction_content.hpp: an LMDB 1.0 environment as of one transaction, read from
// its file while others write it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "interfaces/lmdb/format.hpp"
#include "interfaces/lmdb/reader_slot.hpp"
#include "store/stream/content.hpp"

namespace vellum::lmdb {

// The file, with meta pages that name no other transaction. Writers write only to pages that the
// transaction does not use. Encryption and checksums of LMDB's own do not matter: meta pages have
// neither.
class TransactionContent final : public store::Content {
 public:
  // The last transaction of an environment that other processes have open; null: none has. Errors
  // as by ReaderSlot::join(). Errc::corrupted: the meta pages make no sense. Errc::busy: they do not
  // keep still. REQUIRES: `file` outlives the object.
  static std::unique_ptr<TransactionContent> open(const base::File& file,
                                                  const std::string& lock_file);
  TransactionContent(const base::File& file, std::unique_ptr<ReaderSlot> slot);

  store::ContentRange next(std::span<std::byte> room) override;
  void read(format::PageNumber first, std::span<std::byte> out) const override;
  // Errc::busy: the slot was lost meanwhile.
  void check() const override;
  bool restart() override { return pages_->restart(); }
  std::uint64_t position_bytes() const override;
  std::uint64_t size_bytes() const override { return size_bytes_; }

 private:
  bool read_metas(std::uint32_t page_bytes);
  void hide_others(std::uint32_t page_bytes);

  const base::File& file_;
  const std::unique_ptr<ReaderSlot> slot_;
  std::vector<std::byte> metas_;  // the first two of LMDB's pages
  // Set once the transaction is known: the file has all of its pages since then.
  std::optional<store::FileContent> pages_;
  std::uint64_t transaction_ = 0;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace vellum::lmdb
