// Compares docs/format.md with tests/format/layout.hpp and the encoders. Each table of the document
// that states facts of the code is preceded by a marker (<!-- table: name -->), each worked example
// by <!-- example: name -->.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "format/layout.hpp"
#include "format/signature/hash_tree.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using Row = std::vector<std::string>;

std::string trim(const std::string& s) {
  const auto first = s.find_first_not_of(" \t`");
  if (first == std::string::npos) return "";
  return s.substr(first, s.find_last_not_of(" \t`") - first + 1);
}

Row cells(const std::string& line) {
  Row out;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) out.push_back(trim(cell));
  return out;
}

// The name in a marker line such as `<!-- table: superblock -->`, or "".
std::string marker(const std::string& line, const std::string& kind) {
  const std::string start = "<!-- " + kind + ": ";
  if (line.rfind(start, 0) != 0) return "";
  return line.substr(start.size(), line.find(" -->") - start.size());
}

struct Document {
  std::map<std::string, std::vector<Row>> tables;  // without the two head lines
  std::map<std::string, std::string> examples;     // hex digits only
  std::set<std::string> repeated;
};

void read_table(std::istream& in, std::vector<Row>& rows) {
  std::string line;
  while (std::getline(in, line) && line.empty()) {
  }
  for (int head = 0; !line.empty() && line[0] == '|'; ++head) {
    if (head >= 2) rows.push_back(cells(line));
    if (!std::getline(in, line)) break;
  }
}

void read_example(std::istream& in, std::string& hex) {
  std::string line;
  while (std::getline(in, line) && line != "```") {
  }
  while (std::getline(in, line) && line != "```") {
    for (const char c : line.substr(0, line.find('#'))) {
      if (std::isxdigit(static_cast<unsigned char>(c))) hex.push_back(c);
    }
  }
}

const Document& document() {
  static const Document doc = [] {
    Document d;
    std::ifstream in(std::string(VELLUM_SOURCE_DIR) + "/docs/format.md");
    for (std::string line; std::getline(in, line);) {
      if (const auto name = marker(line, "table"); !name.empty()) {
        if (!d.tables.try_emplace(name).second) d.repeated.insert(name);
        read_table(in, d.tables[name]);
      } else if (const auto example = marker(line, "example"); !example.empty()) {
        if (!d.examples.try_emplace(example).second) d.repeated.insert(example);
        read_example(in, d.examples[example]);
      }
    }
    return d;
  }();
  return doc;
}

std::vector<Row> rows_of(std::span<const Field> fields) {
  std::vector<Row> out;
  for (const Field& f : fields)
    out.push_back({std::to_string(f.offset_bytes), std::to_string(f.bytes), f.name});
  return out;
}

std::vector<Row> rows_of(std::span<const Number> numbers) {
  std::vector<Row> out;
  for (const Number& n : numbers) out.push_back({std::to_string(n.value), n.name});
  return out;
}

// A magic in the document: its text, with the escapes of C.
std::string escaped(const char* magic) {
  std::string out;
  for (const char* c = magic; *c != '\0'; ++c) {
    if (*c == '\r') {
      out += "\\r";
    } else if (*c == '\n') {
      out += "\\n";
    } else {
      out += *c;
    }
  }
  return out;
}

std::string small_magic(std::uint32_t magic) {
  char text[5] = {};
  std::memcpy(text, &magic, 4);
  return text;
}

std::vector<Row> tree_levels() {
  std::vector<Row> out;
  for (unsigned level = 0; level < kStoredLevels; ++level)
    out.push_back({std::to_string(level), std::to_string(tree_page(level, 0))});
  return out;
}

std::map<std::string, std::vector<Row>> expected_tables() {
  return {
      {"superblock", rows_of(kSuperblockFields)},
      {"pack_header", rows_of(kPackHeaderFields)},
      {"record_header", rows_of(kRecordHeaderFields)},
      {"pack_trailer", rows_of(kPackTrailerFields)},
      {"journal_header", rows_of(kJournalHeaderFields)},
      {"frame_header", rows_of(kFrameHeaderFields)},
      {"snapshot_header", rows_of(kWholeFileHeaderFields)},
      {"live_set_header", rows_of(kWholeFileHeaderFields)},
      {"space_note_header", rows_of(kWholeFileHeaderFields)},
      {"working_set_header", rows_of(kWholeFileHeaderFields)},
      {"tiers_header", rows_of(kWholeFileHeaderFields)},
      {"group_header", rows_of(kWholeFileHeaderFields)},
      {"tier_id", rows_of(kTierIdFields)},
      {"tier_kinds", rows_of(kTierKindNumbers)},
      {"record_types", rows_of(kRecordTypeNumbers)},
      {"frame_types", rows_of(kFrameTypeNumbers)},
      {"part_types", rows_of(kPartTypeNumbers)},
      {"page_kinds", rows_of(kPageKindNumbers)},
      {"codecs", rows_of(kCodecNumbers)},
      {"record_flags", rows_of(kRecordFlagNumbers)},
      {"superblock_flags", rows_of(kSuperblockFlagNumbers)},
      {"limits", rows_of(kLimitNumbers)},
      {"tree_levels", tree_levels()},
      {"magics",
       {{"superblock", escaped(kSuperblockMagic)},
        {"pack header", escaped(kPackMagic)},
        {"pack trailer", escaped(kPackTrailerMagic)},
        {"journal header", escaped(kJournalMagic)},
        {"snapshot ref", escaped(kSnapshotMagic)},
        {"signed snapshot ref", escaped(kSignedSnapshotMagic)},
        {"snapshot order", escaped(kSnapshotOrderMagic)},
        {"newest snapshots", escaped(kNewestSnapshotsMagic)},
        {"snapshot note", escaped(kSnapshotNoteMagic)},
        {"live set", escaped(kGcCensusMagic)},
        {"space note", escaped(kSpaceNoteMagic)},
        {"working set", escaped(kWorkingSetMagic)},
        {"tiers", escaped(kTiersMagic)},
        {"tier id", escaped(kTierIdMagic)},
        {"key slots", escaped(kKeySlotsMagic)},
        {"signers", escaped(kSignersMagic)},
        {"group", escaped(kGroupMagic)},
        {"group record", escaped(kGroupRecordMagic)},
        {"proof", small_magic(kProofMagic)},
        {"record header", small_magic(kRecordMagic)},
        {"frame header", small_magic(kFrameMagic)}}},
  };
}

// The last column of a table is prose; the others are facts.
std::vector<Row> facts(const std::vector<Row>& rows, std::size_t columns) {
  std::vector<Row> out;
  for (const Row& r : rows)
    out.emplace_back(r.begin(),
                     r.begin() + static_cast<std::ptrdiff_t>(std::min(columns, r.size())));
  return out;
}

TEST(Document, TablesSayWhatTheCodeSays) {
  for (const auto& [name, expected] : expected_tables()) {
    const auto it = document().tables.find(name);
    ASSERT_NE(it, document().tables.end()) << "docs/format.md has no table " << name;
    EXPECT_EQ(facts(it->second, expected[0].size()), expected) << "table " << name;
  }
}

TEST(Document, EveryRowExplainsItsField) {
  for (const auto& [name, rows] : document().tables) {
    for (const Row& r : rows)
      EXPECT_FALSE(r.back().empty()) << "table " << name << ", row " << r[0];
  }
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

// The same values as in tests/format/samples.hpp. A store of an earlier build has exactly these
// bytes. If one of these tests fails, the format has changed, and kFormatVersion must change too.
std::map<std::string, Bytes> expected_examples() {
  return {
      {"superblock", encode_superblock(samples::superblock())},
      {"version", encode_version(samples::version())},
      {"index", encode_index(samples::index_lines())},
      {"translation", encode_translation(samples::translation())},
      {"delta_batch", encode_delta_batch(samples::delta_batch(), 0, 2)},
      {"map_block", encode_map_block(samples::map_entries())},
      {"run_root", encode_run_root(samples::run_root())},
      {"tiers", encode_tiers(samples::tiers(), samples::store_id())},
      {"group_file", encode_group_file(samples::group_file())},
      {"group_record", encode_group_record(samples::group_record(), samples::store_id())},
      {"commit", encode_commit(samples::commit_body())},
      {"snapshot_order", encode_snapshot_order(300, samples::store_id())},
      {"newest_snapshots",
       encode_newest_snapshots(samples::newest_snapshots(), samples::store_id())},
      {"live_set", encode_gc_census(samples::gc_census(), samples::store_id())},
      {"space_note", encode_space_note(samples::space_note(), samples::store_id())},
      {"working_set", encode_working_set(samples::working_set(), samples::store_id())},
  };
}

TEST(Document, ExamplesAreWhatTheEncodersWrite) {
  for (const auto& [name, bytes] : expected_examples()) {
    const auto it = document().examples.find(name);
    ASSERT_NE(it, document().examples.end()) << "docs/format.md has no example " << name;
    EXPECT_EQ(it->second, hex(bytes)) << "example " << name;
  }
}

TEST(Document, HasNothingThatNoTestHolds) {
  for (const auto& [name, rows] : document().tables)
    EXPECT_TRUE(expected_tables().contains(name)) << name;
  for (const auto& [name, text] : document().examples)
    EXPECT_TRUE(expected_examples().contains(name)) << name;
  EXPECT_TRUE(document().repeated.empty());
}

}  // namespace
}  // namespace vellum::format
