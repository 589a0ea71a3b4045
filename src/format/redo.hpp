// format/redo.hpp: the journal of an atomic file (vellum/atomic_file.hpp, docs/format.md "Journal
// of an atomic file"): two header copies, then redo records, each a commit.
//
// The checksum of a record depends on the journal's epoch. A record is valid when its checksum is
// right and all records before it are valid. One write and one barrier therefore make a commit,
// whatever the order in which the medium writes the lines: an incomplete record is the end. A new
// epoch in the other header copy empties the journal.
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
  std::uint64_t epoch = 0;  // one more each time the journal is emptied; never 0
  std::uint64_t nonce = 0;  // random, of this journal
  // The file that the journal belongs to. A journal of another file is refused.
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;  // 0: the file system does not record it
  // A durable length that the journal once had. A shorter journal was truncated.
  std::uint64_t least_bytes = 0;
  bool operator==(const RedoHeader&) const = default;
};

// Returns kRedoHeaderBytes. REQUIRES: the epoch is not 0.
std::vector<std::byte> encode_redo_header(const RedoHeader& header);
// nullptr, or a description of the error.
const char* decode_redo_header(std::span<const std::byte> bytes, RedoHeader& out) noexcept;

// Whether this is an undamaged header of a newer Vellum.
bool redo_header_is_newer(std::span<const std::byte> bytes) noexcept;

// Lines [first_line, first_line + count) of the file. A span does not cross a page.
struct RedoSpan {
  std::uint64_t first_line = 0;
  std::uint32_t count = 0;
  const std::byte* bytes = nullptr;  // count * kLineBytes, in the caller's memory or in the record
};

struct RedoRecord {
  std::uint64_t sequence = 0;    // the first of an epoch is 1
  std::uint64_t file_bytes = 0;  // the file's size at the commit
  std::vector<RedoSpan> spans;   // their bytes are in the record
};

// Replaces `out` by the record, a multiple of kLineBytes long. Copies the spans' bytes first and
// computes the checksum from the copy. The bytes may therefore change meanwhile. REQUIRES: the
// spans are inside the file.
void encode_redo_record(const RedoHeader& header, std::uint64_t sequence, std::uint64_t file_bytes,
                        std::span<const RedoSpan> spans, std::vector<std::byte>& out);

// The sequence of the record at the start of `log`; 0 if `log` is too short.
std::uint64_t redo_sequence(std::span<const std::byte> log) noexcept;

// The value that the first 8 bytes of a record must have. REQUIRES: `record` has a whole header.
std::uint64_t redo_checksum(const RedoHeader& header, std::span<const std::byte> record) noexcept;

// Lists the spans of a record in order, with their bytes in the record. REQUIRES:
// encode_redo_record() wrote `record`.
void spans_in_record(std::span<const std::byte> record, std::vector<RedoSpan>& out);

// Reads the record at the start of `log` if its sequence is `sequence`. Returns its length in
// bytes, or 0 if the log has no such record. `out.spans` points into `log`.
std::size_t decode_redo_record(const RedoHeader& header, std::uint64_t sequence,
                               std::span<const std::byte> log, RedoRecord& out);

}  // namespace vellum::format
