// cli/files/file_in_use.hpp: whether other processes have a file open, as far as the system
// reports.
#pragma once

#include <string>

#include "base/files/file.hpp"

namespace vellum::cli {

enum class FileUse { writing, any };

// Whether any process has another descriptor or mapping of the file. Also false if the system does
// not report it (fcntl(2), F_SETLEASE): for another user's file, and on some file systems.
bool is_open_in_other_process(const base::File& file, FileUse use);

// Errc::busy if a journal of atomic msync exists next to the file: the file is incomplete without
// it.
void require_no_journal(const std::string& path);

}  // namespace vellum::cli
