// cli/files/file_family.hpp: a data file in use: its companion files, which belong to its
// content, and whether other processes have it open, as far as the system reports.
//
// A database's last transactions may be only in a companion file (SQLite's -wal, DuckDB's .wal), or
// the data file may be half written until one is applied (SQLite's -journal). Without it, the data
// file has another content, and next to a replaced data file it would be applied wrongly. Vellum
// versions a single file. It therefore refuses a file that has a companion with content, and
// restores none next to one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/files/file.hpp"

namespace vellum::cli {

// Errc::busy: a companion of `path` has content. The message explains the remedy.
void require_no_companions(const std::string& path);

// The same, before `path` gets another content. Those in `replaced` get theirs with it.
void require_replaceable(const std::string& path, const std::set<std::string>& replaced = {});

// Removes companions that have content, with their own auxiliary files, and returns their names:
// they belong to the replaced content.
std::vector<std::string> remove_companions(const std::string& path);

enum class FileUse { writing, any };

// Whether any process has another descriptor or mapping of the file. Also false if the system does
// not report it (fcntl(2), F_SETLEASE): for another user's file, and on some file systems.
bool is_open_in_other_process(const base::File& file, FileUse use);

// Errc::busy if a journal of atomic msync exists next to the file: the file is incomplete without
// it.
void require_no_journal(const std::string& path);

}  // namespace vellum::cli
