// cli/files/file_family.hpp: files that a program keeps beside a data file and that belong to its content.
//
// A database's last transactions may be in such a file alone (SQLite's -wal, DuckDB's .wal), or the
// data file may be half written until one is applied (SQLite's -journal). The data file without it is
// another content, and beside another content it is applied where it does not belong. Vellum takes
// one file. So it takes none that has such a file with content beside it, and puts none there.
#pragma once

#include <string>
#include <vector>

namespace vellum::cli {

// Errc::busy: a file beside `path` holds content that belongs to it. The message says the way out.
void require_alone(const std::string& path);

// The same, before `path` gets another content. With `remove`, such files are removed with those
// that go with them, and their names returned: they belong to the content that goes.
std::vector<std::string> make_alone(const std::string& path, bool remove);

}  // namespace vellum::cli
