// vellum/error.hpp: the one exception type of the C++ interface.
//
// Every failure that Vellum reports is a vellum::Error; std::bad_alloc and exceptions of callbacks
// pass through. code() is for programs, what() for people: it names the store, branch, version,
// file or page at fault, and the operating system's reason if there is one. The C interface
// (vellum.h) uses the same numbers; the command line maps them to exit codes (vellum(1), EXIT
// STATUS).
#ifndef VELLUM_ERROR_HPP
#define VELLUM_ERROR_HPP

#include <stdexcept>
#include <string>

namespace vellum {

enum class Errc : int {
  ok = 0,
  invalid_argument = 1,  // a value outside its range, a malformed name, a misaligned pointer
  not_found = 2,         // no such store, branch, snapshot
  already_exists = 3,    // the name is taken
  not_a_store = 4,       // the path exists, but is not a Vellum store
  newer_format = 5,      // written by a newer Vellum: nothing is changed
  busy = 6,              // another writer holds the branch; a fixed address is taken
  read_only = 7,         // the medium, the store or the region cannot be written
  no_space = 8,          // disk full or quota: the last commit stays, the region stays usable
  io = 9,                // the operating system refused (EIO, EACCES, ...)
  corrupted = 10,  // bytes on disk fail their checks; the message names file, offset, version, page
  poisoned = 11,   // an earlier flush failed: the branch refuses commits until it is reopened
  unsupported = 12,    // this kernel or build cannot do it
  out_of_memory = 13,  // address space, memory or descriptors refused
  wrong_key = 15,      // the store is encrypted, and no key was given, or one that does not fit; or
                       // it is plain, and only encrypted ones are wanted
  untrusted = 16,  // a version is not signed by a wanted key, or is not what was signed; a remote
                   // shows an older or a forked head than before
};

// A short, stable name ("not_found") for logs and JSON.
const char* errc_name(Errc code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

}  // namespace vellum

#endif  // VELLUM_ERROR_HPP
