// interfaces/atomic_file/journal_file.hpp: FILE.vellum-journal: its name, its lock and its life.
//
// A process that has FILE open holds the lock of its journal, not of FILE, which the program may
// lock. A journal that no process has locked is the result of a crash.
#pragma once

#include <memory>
#include <string>

#include "base/files/file.hpp"

namespace vellum::atomic_file {

std::string journal_path(const std::string& file_path);

// The existing journal, locked; nullptr when there is none. Errc::busy.
std::unique_ptr<base::File> open_journal(base::Fs& fs, const std::string& file_path);

// Creates an unfinished journal: locked, empty, and under another name, FILE.vellum-journal.N.new.
// Removes leftovers of killed processes under these names, and those of earlier builds under random
// names.
// Errc::busy: all of the names are in use.
std::unique_ptr<base::File> start_journal(base::Fs& fs, const std::string& file_path);
// Removes an unfinished journal.
void discard_journal(base::Fs& fs, const base::File& journal) noexcept;
// Gives it its name, durably. False: another one was created meanwhile.
bool finish_journal(base::Fs& fs, base::File& journal, const std::string& file_path);

// REQUIRES: the caller holds its lock. Durable on return.
void remove_journal(base::Fs& fs, const std::string& file_path);
// Renames it to FILE.vellum-journal.corrupted, or that with a number appended, which no program
// opens, and returns the name. REQUIRES: the caller holds its lock. Durable on return.
std::string rename_corrupted_journal(base::Fs& fs, const std::string& file_path);

}  // namespace vellum::atomic_file
