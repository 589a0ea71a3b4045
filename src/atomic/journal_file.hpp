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

// A journal in the making: locked, and empty, under another name.
std::unique_ptr<base::File> start_journal(base::Fs& fs, const std::string& file_path);
// Takes it back.
void discard_journal(base::Fs& fs, const base::File& journal) noexcept;
// Gives it its name, durably. False: there is one already, made meanwhile.
bool finish_journal(base::Fs& fs, base::File& journal, const std::string& file_path);

// REQUIRES: the caller holds its lock. Durable when it returns.
void remove_journal(base::Fs& fs, const std::string& file_path);

}  // namespace vellum::atomic
