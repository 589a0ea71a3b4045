// format/redo.hpp: the journal of an atomic file (vellum/atomic_file.hpp, docs/format.md "Journal
// of an atomic file"): two header copies, then redo records, each a commit.
//
// A record counts when its checksum, which depends on the journal's epoch, is right and all records
// before it count. So one write and one barrier make a commit, in whatever order the medium takes
// the lines: an incomplete record is the end. A new epoch in the other header copy empties the
// journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/records/page_diff.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kRedoHeaderCopyBytes = 4096;
inline constexpr std::uint64_t kRedoLogBegin = 2 * kRedoHeaderCopyBytes;
inline constexpr std::size_t kRedoHeaderBytes = 64;        // the used part of a header copy
inline constexpr std::size_t kRedoRecordHeaderBytes = 64;  // a line
inline constexpr std::uint64_t kMaxRedoFileBytes = 4ULL << 40;

// The content of a header copy.
struct RedoHeader {
  std::uint64_t epoch = 0;  // grows by one each time the journal is emptied; never 0
  std::uint64_t nonce = 0;  // random, of this journal
  // The file that the journal belongs to: a journal beside another file is refused.
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;  // 0: the file system does not say
  // The journal once had this length durably: a shorter one was cut.
  std::uint64_t least_bytes = 0;
  bool operator==(const RedoHeader&) const = default;
};

std::vector<std::byte> encode_redo_header(const RedoHeader& header);  // kRedoHeaderBytes
// nullptr, or a description of the error.
const char* decode_redo_header(std::span<const std::byte> bytes, RedoHeader& out) noexcept;

// Whether this is a whole header of a newer Vellum.
bool redo_header_is_newer(std::span<const std::byte> bytes) noexcept;

// Lines [first_line, first_line + count) of the file. A span does not cross a page.
struct RedoSpan {
  std::uint64_t first_line = 0;
  std::uint32_t count = 0;
  const std::byte* bytes = nullptr;  // count * kLineBytes: of the memory to store, or in the record
};

struct RedoRecord {
  std::uint64_t sequence = 0;    // the first of an epoch is 1
  std::uint64_t file_bytes = 0;  // the file's size at the commit
  std::vector<RedoSpan> spans;   // bytes: in the record
};

// Replaces `out` by the record, a multiple of kLineBytes long. The spans' bytes are copied first
// and the checksum covers the copy, so they may change meanwhile.
void encode_redo_record(const RedoHeader& header, std::uint64_t sequence, std::uint64_t file_bytes,
                        std::span<const RedoSpan> spans, std::vector<std::byte>& out);

// The sequence of a record at the start of `log`, if there is one.
std::uint64_t redo_sequence(std::span<const std::byte> log) noexcept;

// The value that the first 8 bytes of a record must have.
std::uint64_t redo_checksum(const RedoHeader& header, std::span<const std::byte> record) noexcept;

// Lists the spans of an encoded record in order, with their bytes in the record.
void spans_in_record(std::span<const std::byte> record, std::vector<RedoSpan>& out);

// Reads the record at the start of `log` when its sequence is `sequence`. Returns its length in
// bytes, or 0 where the log ends here. `out.spans` points into `log`.
std::size_t decode_redo_record(const RedoHeader& header, std::uint64_t sequence,
                               std::span<const std::byte> log, RedoRecord& out);

}  // namespace vellum::format
