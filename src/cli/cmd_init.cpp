// cli/cmd_init.cpp: vellum init: makes an empty store.
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/exit_status.hpp"

namespace vellum::cli {
namespace {

struct InitArguments {
  std::string store;
  std::string compression = "zstd";
  std::optional<int> level;
  std::optional<std::string> block;
  std::optional<std::string> pack_size;
  bool fixed_blocks = false, no_filters = false, no_dedup = false, no_deltas = false;
};

StoreOptions::Compression compression_from(const std::string& name) {
  return name == "none"  ? StoreOptions::Compression::none
         : name == "lz4" ? StoreOptions::Compression::lz4
                         : StoreOptions::Compression::zstd;
}

std::uint32_t parse_block(const std::string& text) {
  const std::uint64_t bytes = parse_size("--block", text);
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(Errc::invalid_argument,
                fmt::format("--block: {} is too large: at most 128 MiB", text));
  }
  return static_cast<std::uint32_t>(bytes);
}

StoreOptions options_from(const InitArguments& arguments) {
  StoreOptions options;
  options.compression = compression_from(arguments.compression);
  if (arguments.level) {
    if (options.compression != StoreOptions::Compression::zstd) {
      throw Error(Errc::invalid_argument,
                  fmt::format("--level: only zstd has levels, not {}", arguments.compression));
    }
    options.compression_level = *arguments.level;
  }
  if (arguments.block) {
    options.block_bytes = parse_block(*arguments.block);
  }
  if (arguments.pack_size) {
    options.pack_bytes = parse_size("--pack-size", *arguments.pack_size);
  }
  options.grow_blocks = !arguments.fixed_blocks;
  options.filters = !arguments.no_filters;
  options.dedup = !arguments.no_dedup;
  options.deltas = !arguments.no_deltas;
  return options;
}

// A file is in the way as much as a full directory is; the library would only say that it cannot
// list it.
void require_no_file(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    throw Error(Errc::already_exists, fmt::format("{}: exists and is not a directory", path));
  }
}

int run_init(Context& context, const InitArguments& arguments) {
  require_no_file(arguments.store);
  const Store store = Store::create(arguments.store, options_from(arguments));
  const StoreOptions options = store.options();
  context.report(Json{{"store", store.path()},
                      {"id", store.id()},
                      {"compression", compression_name(options.compression)},
                      {"compression_level", options.compression_level},
                      {"block_bytes", options.block_bytes},
                      {"grow_blocks", options.grow_blocks},
                      {"filters", options.filters},
                      {"dedup", options.dedup},
                      {"deltas", options.deltas},
                      {"pack_bytes", options.pack_bytes}},
                 fmt::format("created store {} ({}, blocks of {}, packs of {})", store.path(),
                             compression_text(options), human_bytes(options.block_bytes),
                             human_bytes(options.pack_bytes)));
  return kExitOk;
}

}  // namespace

void add_init(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command = add_command(app, context, "init", "Make an empty store", arguments->store,
                                  [&context, arguments] { return run_init(context, *arguments); });
  command->add_option("--compression", arguments->compression, "none, lz4 or zstd (the default)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}));
  command->add_option("--level", arguments->level, "zstd's level, 1 (the default) to 19")
      ->type_name("N")
      ->check(CLI::Range(1, 19));
  command
      ->add_option("--block", arguments->block,
                   "How much is compressed together: 4K to 128M, a power of two; 64K unless told")
      ->type_name("SIZE");
  command
      ->add_option("--pack-size", arguments->pack_size,
                   "Size at which a pack file is sealed: 1M to 1T; 256M unless told")
      ->type_name("SIZE");
  command->add_flag("--fixed-blocks", arguments->fixed_blocks,
                    "Blocks never grow where their pages compress to little");
  command->add_flag("--no-filters", arguments->no_filters,
                    "No byte planes or differences of words before compression");
  command->add_flag("--no-dedup", arguments->no_dedup,
                    "Store a page again that the store holds already");
  command->add_flag("--no-deltas", arguments->no_deltas, "Store a changed page whole");
}

}  // namespace vellum::cli
