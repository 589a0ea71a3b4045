// atomic/journal_file.hpp: FILE.vellum-journal: its name, its lock, and how it comes and goes.
//
// Whoever has FILE open holds the lock of its journal, not of FILE, which is the program's to lock.
// A journal without a holder is one that a crash left.
#pragma once

#include <memory>
#include <string>

#include "base/file.hpp"

namespace vellum::atomic {

std::string journal_path(const std::string& file_path);

// The journal that is there, locked; nullptr when there is none. Errc::busy.
std::unique_ptr<base::File> open_journal(base::Fs& fs, const std::string& file_path);

// A journal in the making: locked, and empty, under another name, FILE.vellum-journal.N.new. What a
// killed process has left under one of these names goes, and so do the journals that one of an
// earlier build has left under a random name. Errc::busy: all of the names are in use.
std::unique_ptr<base::File> start_journal(base::Fs& fs, const std::string& file_path);
// Takes it back.
void discard_journal(base::Fs& fs, const base::File& journal) noexcept;
// Gives it its name, durably. False: there is one already, made meanwhile.
bool finish_journal(base::Fs& fs, base::File& journal, const std::string& file_path);

// REQUIRES: the caller holds its lock. Durable when it returns.
void remove_journal(base::Fs& fs, const std::string& file_path);
// Gives it a name that nobody looks at, FILE.vellum-journal.damaged or one with a number behind
// that, and returns it. REQUIRES: the caller holds its lock. Durable when it returns.
std::string put_journal_aside(base::Fs& fs, const std::string& file_path);

}  // namespace vellum::atomic
