// cli/options/encoding_arguments.hpp: options of init and branch for the encoding of pages.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vellum/encoding.hpp>

#include "cli/terminal/output.hpp"

namespace vellum::cli {

struct EncodingArguments {
  std::optional<std::string> compression, block, hash;
  std::optional<int> level;
  std::optional<bool> grow_blocks, filters, dedup, deltas;

  bool any() const;
  // The encoding with the given options applied. Throws Errc::invalid_argument, naming the option.
  Encoding on(Encoding encoding) const;
};

// `arguments` must outlive the command.
void add_encoding_options(CLI::App& command, EncodingArguments& arguments);

}  // namespace vellum::cli
