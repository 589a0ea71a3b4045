// base/crypto/secret_input.hpp: secrets from files, descriptors and commands, read straight into
// secret memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/crypto/secret.hpp"

namespace vellum::base {

inline constexpr std::size_t kMaxSecretBytes = 4096;

// All bytes, at most kMaxSecretBytes. `what` names the source in errors. Throws Errc::io,
// not_found, or invalid_argument for a longer content.
Secret read_secret(int fd, const std::string& what);
Secret read_secret_file(const std::string& path);
// The standard output of /bin/sh -c. Throws Errc::io if the command fails. Waits for it without a
// limit: it may ask a person. One that prints too much is killed.
Secret read_secret_command(const std::string& command);

// Cuts the secret after its first line, without the line's end.
void keep_first_line(Secret& secret) noexcept;

}  // namespace vellum::base
