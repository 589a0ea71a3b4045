// fuzz/store_script.hpp: an input as a list of changes to the sample store.
//
// The mutations of libFuzzer change the list. They thus stay small, every input is a store, and no
// checksum blocks them.
#pragma once

#include "input.hpp"
#include "store_image.hpp"

namespace vellum::fuzz {

// Kinds of changes: the first byte of each, modulo kChanges.
enum class Change : std::uint8_t {
  payload_bytes,     // overwrite bytes of a record's decompressed payload
  payload_size,      // cut or extend it
  payload_replace,   // bytes of the input instead
  payload_of_other,  // another record's (stale, misdirected)
  record_header,     // type, codec, items, wrong sizes
  map_entry,         // one field of one entry
  version_field,     // of a ref, a base frame, a version record
  version_runs,      // add, drop, repeat, swap
  frame_payload,
  frame_header,
  ref_identity,  // file name, name, branch, store
  journal_identity,
  pack_identity,
  superblock,
  bomb,  // megabytes of zeros, compressed
  // From here on changes of the written files.
  file_bytes,
  file_size,
  file_kind,  // a link, FIFO or directory in its place, or nothing
  file_copy,  // one file under another's name
  count
};

// Applies changes until the list ends. Changes of files wait for apply_to_files(), after
// write_image() has created the files.
class Script {
 public:
  explicit Script(View input) : input_(input) {}
  void apply_to_image(Image& image);
  void apply_to_files(test::MemoryFs& fs, const std::string& root);

 private:
  struct FileChange {
    Change change;
    std::uint8_t file, other;
    std::uint32_t at;
    Bytes bytes;
  };
  void change_image(Change change, Image& image);
  void note_file_change(Change change);
  Input input_;
  std::vector<FileChange> files_;
};

}  // namespace vellum::fuzz
