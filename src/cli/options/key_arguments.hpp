// cli/options/key_arguments.hpp: the secrets of encrypted stores on a command line: names of files,
// descriptors and commands, or a prompt; never a secret itself.
#pragma once

#include <CLI/CLI.hpp>
#include <vellum/key.hpp>

namespace vellum::cli {

// The global options for the secrets that open stores.
void add_key_options(CLI::App& app, KeySource& source);
// The options for the secret of a new key slot: those names with `new-`, and a recipient.
void add_new_key_options(CLI::App& command, KeySource& source);
// The secret of a new slot: the given one, or a prompt for a new passphrase.
KeySource new_key(KeySource given);
// --encrypt, with a help that begins with `what`, and --recipient, for the first slot.
void add_encrypt_options(CLI::App& command, bool& encrypt, std::string& recipient,
                         const std::string& what);
// The secret of the first slot: that of the recipient, or the given one, or that of the
// environment, or a prompt for a new passphrase.
KeySource first_key(const KeySource& given, const std::string& recipient);
// Openings use the given secrets or, without any, those of the environment; then a prompt, if there
// is a terminal. With a given secret, every store has to be encrypted, or have an encrypted remote.
void use_keys(const KeySource& given);

// Makes `file`, unless it is empty, the key that signs, also for the programs that `vellum run` starts.
// Throws if it has no key.
void use_sign_key(const std::string& file);

}  // namespace vellum::cli
