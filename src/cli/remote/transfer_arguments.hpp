// cli/remote/transfer_arguments.hpp: options of commands that transfer versions.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "remote/session/open_engine.hpp"

namespace vellum::cli {

struct TransferArguments {
  std::string limit_rate;
  std::size_t connections = 0;

  // The remote at `url`, with these limits. Throws Errc::invalid_argument, naming the option.
  std::shared_ptr<remote::ObjectStore> open(const std::string& url) const;
};

// `arguments` must outlive the command.
void add_transfer_options(CLI::App& command, TransferArguments& arguments);

}  // namespace vellum::cli
