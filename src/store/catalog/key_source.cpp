// The process's source of keys (vellum/key.hpp).
#include <cstdlib>
#include <mutex>
#include <optional>

#include <vellum/key.hpp>

namespace vellum {
namespace {

// Not in a program with more rights than its caller: the caller's environment would choose a command,
// and files to read.
std::string variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

std::mutex source_mutex;  // guards the source
std::optional<KeySource>& chosen_source() {
  static std::optional<KeySource> source;
  return source;
}

}  // namespace

KeySource key_source_of_environment() {
  KeySource out;
  out.passphrase_file = variable("VELLUM_PASSPHRASE_FILE");
  out.key_file = variable("VELLUM_KEY_FILE");
  out.identity_file = variable("VELLUM_IDENTITY_FILE");
  out.command = variable("VELLUM_KEY_COMMAND");
  out.fingerprint = variable("VELLUM_KEY_FINGERPRINT");
  out.encrypted_only = !variable("VELLUM_ENCRYPTED_ONLY").empty();
  return out;
}

void set_key_source(const KeySource& source) {
  const std::lock_guard guard(source_mutex);
  chosen_source() = source;
}

KeySource key_source() {
  const std::lock_guard guard(source_mutex);
  return chosen_source() ? *chosen_source() : key_source_of_environment();
}

}  // namespace vellum
