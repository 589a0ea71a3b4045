// cli/commands/cmd_cat.cpp: vellum cat: writes the bytes of a version to standard output.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kChunkBytes = 4u << 20;

struct CatArguments {
  std::string store;
  std::string version;
  std::string offset = "0";
  std::optional<std::string> length;  // to the end unless given
};

// Checks the range first, so that a bad one is reported before any output.
ByteRange requested_range(const CatArguments& arguments, std::uint64_t file_bytes) {
  ByteRange range;
  range.offset_bytes = parse_size("--offset", arguments.offset);
  if (range.offset_bytes > file_bytes) {
    fail(Errc::invalid_argument, "--offset: {} is past the end of '{}', which has {} bytes",
         range.offset_bytes, arguments.version, file_bytes);
  }
  const std::uint64_t rest = file_bytes - range.offset_bytes;
  range.length_bytes = arguments.length ? parse_size("--length", *arguments.length) : rest;
  if (range.length_bytes > rest) {
    fail(Errc::invalid_argument, "--length: {} extends past the end of '{}', which has {} bytes",
         range.length_bytes, arguments.version, file_bytes);
  }
  return range;
}

void cat_snapshot(Context& context, const Store& store, const CatArguments& arguments,
                  std::uint64_t file_bytes) {
  ByteRange left = requested_range(arguments, file_bytes);
  std::string chunk(static_cast<std::size_t>(std::min(left.length_bytes, kChunkBytes)), '\0');
  while (left.length_bytes > 0) {
    const auto take = static_cast<std::size_t>(std::min(left.length_bytes, kChunkBytes));
    store.read(arguments.version, left.offset_bytes, chunk.data(), take);
    context.out.write(std::string_view(chunk.data(), take));
    left.offset_bytes += take;
    left.length_bytes -= take;
  }
}

// A writer may move the head between two reads; an open version does not change.
void cat_head(Context& context, Store& store, const CatArguments& arguments) {
  const Region region = store.open_version(arguments.version);
  ByteRange left = requested_range(arguments, region.file_bytes());
  const char* const data = static_cast<const char*>(region.data());
  while (left.length_bytes > 0) {
    const auto take = static_cast<std::size_t>(std::min(left.length_bytes, kChunkBytes));
    // With the pin a corrupted page causes an exception, not a signal.
    const Pin pin = region.pin({left.offset_bytes, take});
    context.out.write(std::string_view(data + left.offset_bytes, take));
    left.offset_bytes += take;
    left.length_bytes -= take;
  }
}

int run_cat(Context& context, CatArguments arguments) {
  Store store = Store::open(arguments.store);
  arguments.version = resolve_version(store, arguments.version);
  const VersionInfo version = store.version(arguments.version);
  if (version.is_branch) {
    cat_head(context, store, arguments);
  } else {
    cat_snapshot(context, store, arguments, version.file_bytes);
  }
  return kExitOk;
}

}  // namespace

void add_cat(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CatArguments>();
  CLI::App* command =
      add_command(app, context, "cat", "Write a version's bytes to standard output",
                  arguments->store, [&context, arguments] { return run_cat(context, *arguments); });
  command->preparse_callback([&context](std::size_t) { context.raw_output = true; });
  command->add_option("VERSION", arguments->version, "A branch (its head) or a snapshot")
      ->required();
  command->add_option("--offset", arguments->offset, "The first byte to write (default: 0)")
      ->type_name("SIZE");
  command
      ->add_option("--length", arguments->length,
                   "The number of bytes to write (default: all up to the end)")
      ->type_name("SIZE");
}

}  // namespace vellum::cli
