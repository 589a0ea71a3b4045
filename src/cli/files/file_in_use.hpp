// cli/files/file_in_use.hpp: whether others have a file open, as far as the system tells.
#pragma once

#include <string>

#include "base/files/file.hpp"

namespace vellum::cli {

enum class Use { writing, any };

// Whether any process has another descriptor or mapping of the file. False, too, where the system
// does not tell (fcntl(2), F_SETLEASE): for another user's file, and on some file systems.
bool is_open_elsewhere(const base::File& file, Use use);

// Errc::busy if a journal of atomic msync lies beside the file: the file alone is incomplete.
void require_no_journal(const std::string& path);

}  // namespace vellum::cli
