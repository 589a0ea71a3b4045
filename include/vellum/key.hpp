// vellum/key.hpp: the keys of an encrypted store, and where they come from.
//
// A store has one data key, which is random. Each key slot holds it, wrapped by a secret: a
// passphrase, a key file, a recipient's public key, or the output of a command. Any one of them
// opens the store.
#ifndef VELLUM_KEY_HPP
#define VELLUM_KEY_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace vellum {

// Where secrets come from. Each member may be empty. A secret is never an argument, and never part
// of an error's text.
struct KeySource {
  std::string passphrase_file;  // its first line is a passphrase
  int passphrase_fd = -1;       // a descriptor to read one from, to its end, once
  std::string key_file;         // its bytes, at least 32
  std::string identity_file;    // of age: a line AGE-SECRET-KEY-1...
  std::string recipient;        // of age: age1...; only to make a slot
  // For the shell; the first line of its output is the secret. It may ask a person: the caller waits
  // without a limit.
  std::string command;
  // Of the data keys that stores may have (Store::key_fingerprint()), separated by commas; empty:
  // any. Other stores, and plain ones, are refused (Errc::wrong_key). Anybody can make a store that
  // a recipient's identity opens: only the fingerprint tells it from the right one.
  std::string fingerprint;
  // Refuse plain stores (Errc::wrong_key): who can write a store's directory can put a plain store
  // there, and would read what is stored in it.
  bool encrypted_only = false;
  // With encrypted_only: accept what the secret of an encrypted remote is for: a plain store that has
  // one, in the program's commands on remotes; and lazy clones of such a remote that it opens.
  bool or_encrypted_remote = false;
  // Asks for a passphrase: writes it to `to`, and returns its length; 0: none. Called last.
  std::function<std::size_t(const std::string& question, char* to, std::size_t capacity)> prompt;
};

// From VELLUM_PASSPHRASE_FILE, VELLUM_KEY_FILE, VELLUM_IDENTITY_FILE and VELLUM_KEY_COMMAND;
// VELLUM_KEY_FINGERPRINT; `encrypted_only`: VELLUM_ENCRYPTED_ONLY is not empty. Nothing in a program
// that runs with more rights than its caller (set-user-id, capabilities).
KeySource key_source_of_environment();

// The source of all later openings in this process. Until the first call it is that of the
// environment.
void set_key_source(const KeySource& source);
KeySource key_source();

struct KeySlot {
  enum class Kind { passphrase = 1, key_file = 2, recipient = 3, command = 4 };
  std::uint32_t number = 0;  // unique in the store, and never used again
  Kind kind = Kind::passphrase;
  std::string label;      // at most 200 bytes
  std::string recipient;  // of kind recipient: age1...
};

}  // namespace vellum

#endif  // VELLUM_KEY_HPP
