// cli/remote/remote_commands.hpp: commands that inspect or clean up a store, for a remote that is
// given by its URL instead of a store.
#pragma once

#include <optional>
#include <set>
#include <string>

#include <vellum/retention.hpp>

#include "cli/remote/remote_by_url.hpp"
#include "cli/terminal/command.hpp"
#include "remote/upkeep.hpp"

namespace vellum::cli {

std::vector<VersionInfo> list_remote(const std::string& url);
int stat_remote(Context& context, const std::string& url);
// Names the versions that the store `from`, unless it is empty, could mend.
int verify_remote(Context& context, const std::string& url, bool read_data,
                  const std::string& from);
int gc_remote(Context& context, const std::string& url, bool dry_run);
// Sends objects that the remote has lost, from the store `from`.
int repair_remote(Context& context, const std::string& url, const std::string& from);
// Removes the hold of a deleted lazy clone.
int forget_hold_at_remote(Context& context, const std::string& url, const std::string& hold);
// Checks all names before the first is removed.
void remove_at_remote(const RemoteByUrl& place, const std::set<std::string>& names, bool branches);
// What a gc there would delete afterwards.
remote::RemoteFreeable freeable_at_remote(const RemoteByUrl& place,
                                          const std::set<std::string>& names, bool branches);

}  // namespace vellum::cli
