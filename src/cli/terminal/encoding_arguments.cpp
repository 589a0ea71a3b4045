#include "cli/terminal/encoding_arguments.hpp"

#include <functional>
#include <limits>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "cli/terminal/arguments.hpp"

namespace vellum::cli {
namespace {

using Compression = Encoding::Compression;

Compression compression_from(const std::string& name) {
  return name == "none" ? Compression::none : name == "lz4" ? Compression::lz4 : Compression::zstd;
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

Encoding EncodingArguments::on(Encoding base) const {
  if (compression) {
    const Compression wanted = compression_from(*compression);
    if (wanted != base.compression) base.compression_level = 1;
    base.compression = wanted;
  }
  if (level) {
    if (base.compression != Compression::zstd) {
      fail(Errc::invalid_argument, "--level: only zstd has levels, not {}",
           compression_name(base.compression));
    }
    base.compression_level = *level;
  }
  if (block) base.block_bytes = parse_block(*block);
  if (hash) base.hash = *hash == "sha256" ? Encoding::Hash::sha256 : Encoding::Hash::none;
  set(base.grow_blocks, grow_blocks);
  set(base.filters, filters);
  set(base.dedup, dedup);
  set(base.deltas, deltas);
  return base;
}

void add_encoding_options(CLI::App& command, EncodingArguments& arguments) {
  command.add_option("--compression", arguments.compression, "none, lz4 or zstd (the default)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}));
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
