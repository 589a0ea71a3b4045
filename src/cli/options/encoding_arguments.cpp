#include "cli/options/encoding_arguments.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <vellum/error.hpp>

#include "base/bytes/codec.hpp"
#include "base/fail.hpp"
#include "cli/options/arguments.hpp"

namespace vellum::cli {
namespace {

using Compression = Encoding::Compression;

std::map<std::string, Compression> compressions() {
  std::map<std::string, Compression> found;
  for (const auto& [name, codec] : base::codecs()) {
    if (codec.filter == base::Filter::none) found.emplace(name, codec.compression);
  }
  return found;
}

std::uint32_t parse_block(const std::string& text) {
  const std::uint64_t bytes = parse_size("--block", text);
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    fail(Errc::invalid_argument, "--block: {} is too large: at most 128 MiB", text);
  }
  return static_cast<std::uint32_t>(bytes);
}

void set(bool& option, const std::optional<bool>& given) {
  if (given) option = *given;
}

// For a pair of flags: the count is positive for the first, and negative for the second.
std::function<void(std::int64_t)> given(std::optional<bool>& option) {
  return [&option](std::int64_t count) { option = count > 0; };
}

}  // namespace

bool EncodingArguments::any() const {
  return compression || block || hash || level || grow_blocks || filters || dedup || deltas;
}

Encoding EncodingArguments::on(Encoding encoding) const {
  if (compression) {
    const Compression wanted = compressions().at(*compression);
    if (wanted != encoding.compression) encoding.compression_level = 1;
    encoding.compression = wanted;
  }
  if (level) {
    if (!base::has_levels(encoding.compression)) {
      fail(Errc::invalid_argument, "--level: only zstd has levels, not {}",
           base::codec_name(encoding.compression));
    }
    encoding.compression_level = *level;
  }
  if (block) encoding.block_bytes = parse_block(*block);
  if (hash) encoding.hash = *hash == "sha256" ? Encoding::Hash::sha256 : Encoding::Hash::none;
  set(encoding.grow_blocks, grow_blocks);
  set(encoding.filters, filters);
  set(encoding.dedup, dedup);
  set(encoding.deltas, deltas);
  return encoding;
}

void add_encoding_options(CLI::App& command, EncodingArguments& arguments) {
  std::vector<std::string> names;
  for (const auto& [name, compression] : compressions()) names.push_back(name);
  command
      .add_option("--compression", arguments.compression,
                  fmt::format("The compression of pages: {} (default: {})", fmt::join(names, ", "),
                              base::codec_name(Encoding().compression)))
      ->type_name("NAME")
      ->check(CLI::IsMember(names));
  command.add_option("--level", arguments.level, "zstd's level, 1 (the default) to 19")
      ->type_name("N")
      ->check(CLI::Range(1, 19));
  command
      .add_option("--block", arguments.block,
                  "The size of blocks, which are compressed together: 4K to 128M, a power of two "
                  "(default: 64K)")
      ->type_name("SIZE");
  command
      .add_option(
          "--hash", arguments.hash,
          "The hash of every block, in addition to its checksum: none (the default) or sha256")
      ->type_name("NAME")
      ->check(CLI::IsMember({"none", "sha256"}));
  command.add_flag_function("--grow-blocks,!--fixed-blocks", given(arguments.grow_blocks),
                            "Whether blocks grow if their pages compress well");
  command.add_flag_function(
      "--filters,!--no-filters", given(arguments.filters),
      "Whether blocks may become byte planes or differences before compression");
  command.add_flag_function("--dedup,!--no-dedup", given(arguments.dedup),
                            "Whether a page that the store already has is stored only once");
  command.add_flag_function("--deltas,!--no-deltas", given(arguments.deltas),
                            "Whether a changed page may be stored as a delta");
}

}  // namespace vellum::cli
