// cli/files/file_family.hpp: companion files of a data file, which belong to its content. A
// database's last transactions may be only in a companion file (SQLite's -wal, DuckDB's .wal), or
// the data file may be half written until one is applied (SQLite's -journal). Without it, the data
// file has another content, and next to a replaced data file it would be applied wrongly. Vellum
// versions a single file. It therefore refuses a file that has a companion with content, and
// restores none next to one.
#pragma once

#include <string>
#include <vector>

namespace vellum::cli {

// Errc::busy: a companion of `path` has content. The message explains the remedy.
void require_no_companions(const std::string& path);

// The same, before `path` gets another content. With `remove`, companions are removed with their
// own auxiliary files, and their names returned: they belong to the replaced content.
std::vector<std::string> clear_companions(const std::string& path, bool remove);

}  // namespace vellum::cli
