// cli/remote/remote_commands.hpp: commands that look at a store, or tidy it up, for a remote that is given
// by its URL in place of a store.
#pragma once

#include <optional>
#include <set>
#include <string>

#include <vellum/retention.hpp>

#include "cli/terminal/command.hpp"

namespace vellum::cli {

std::vector<VersionInfo> list_remote(const std::string& url);
int stat_remote(Context& context, const std::string& url);
int verify_remote(Context& context, const std::string& url, bool read_data);
int gc_remote(Context& context, const std::string& url, bool dry_run);
// Sends from the store `from` what the remote has lost.
int repair_remote(Context& context, const std::string& url, const std::string& from);
// Removes what keeps the pieces of a lazy clone that is gone.
int forget_hold_at_remote(Context& context, const std::string& url, const std::string& hold);
// Checks all names before the first is removed.
void remove_at_remote(const std::string& url, const std::set<std::string>& names, bool branches);

}  // namespace vellum::cli
