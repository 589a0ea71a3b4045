// cli/options/arguments.hpp: values from the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vellum/retention.hpp>

namespace vellum::cli {

// Parses "4096", "0x1000", "64K", "64KiB", "1M", "2G", "1T": powers of 1024, in either case.
// Errc::invalid_argument names `option`.
std::uint64_t parse_size(const std::string& option, const std::string& text);

// Whether names of branches and snapshots may have this byte.
bool is_name_byte(char c);
// Whether `name` may name a branch or snapshot.
bool is_good_name(const std::string& name) noexcept;
// Throws Errc::invalid_argument unless it may. Commands call it before steps that must not happen
// when a later step would fail on the name.
void require_good_name(const std::string& name);

// Throws Errc::invalid_argument if a message is longer than a store permits.
void require_good_message(const std::string& message);

// The rules for the snapshots to keep, --keep-last and its siblings. `policy` must outlive the
// command.
void add_retention_options(CLI::App& command, RetentionPolicy& policy);

// Whether it has a rule.
bool has_rule(const RetentionPolicy& policy);

}  // namespace vellum::cli
