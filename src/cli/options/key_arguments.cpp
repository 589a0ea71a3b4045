#include "cli/options/key_arguments.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <vellum/signature.hpp>

#include "base/crypto/secret.hpp"
#include "base/fail.hpp"

namespace vellum::cli {
namespace {

// Catches the signals that would end the process while its terminal is silent. They arrive only in
// ppoll(2) with mask().
class CaughtSignals {
 public:
  CaughtSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : kNumbers) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &mask_);
    caught_ = 0;
    struct sigaction note{};
    note.sa_handler = [](int number) { caught_ = number; };
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      ::sigaction(kNumbers[i], &note, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) ::sigaction(kNumbers[i], &before_[i], nullptr);
    }
  }
  ~CaughtSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      ::sigaction(kNumbers[i], &before_[i], nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  const sigset_t& mask() const noexcept { return mask_; }
  int caught() const noexcept { return caught_; }  // 0: none

 private:
  static constexpr std::array kNumbers{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  static volatile sig_atomic_t caught_;
  std::array<struct sigaction, kNumbers.size()> before_{};
  sigset_t mask_{};
};
volatile sig_atomic_t CaughtSignals::caught_ = 0;

// The terminal of the process, without echo.
class SilentTerminal {
 public:
  SilentTerminal() : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
    if (fd_ < 0 || ::tcgetattr(fd_, &before_) != 0) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    usable_ = ::tcsetattr(fd_, TCSAFLUSH, &silent) == 0;
  }
  ~SilentTerminal() {
    if (usable_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
    if (fd_ >= 0) ::close(fd_);
  }
  SilentTerminal(const SilentTerminal&) = delete;
  SilentTerminal& operator=(const SilentTerminal&) = delete;

  bool usable() const noexcept { return usable_; }
  // 0: no answer, or a signal.
  std::size_t ask(const std::string& question, const CaughtSignals& signals, char* to,
                  std::size_t capacity) {
    write(question);
    std::size_t length = 0;
    char next = 0;
    while (signals.caught() == 0) {
      pollfd input{fd_, POLLIN, 0};
      if (::ppoll(&input, 1, nullptr, &signals.mask()) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      const ssize_t n = ::read(fd_, &next, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || next == '\n') break;
      if (length < capacity) to[length++] = next;
    }
    write("\n");
    return signals.caught() == 0 ? length : 0;
  }

 private:
  void write(const std::string& text) {
    [[maybe_unused]] const ssize_t n = ::write(fd_, text.data(), text.size());
  }

  int fd_;
  bool usable_ = false;
  termios before_{};
};

std::size_t ask(const std::string& question, char* to, std::size_t capacity) {
  std::size_t length = 0;
  int caught = 0;
  {
    const CaughtSignals signals;
    SilentTerminal terminal;
    if (terminal.usable()) length = terminal.ask(question, signals, to, capacity);
    caught = signals.caught();
  }
  if (caught != 0) ::raise(caught);  // the terminal echoes again
  return length;
}

// A typing error would lock the store.
std::size_t ask_twice(const std::string& question, char* to, std::size_t capacity) {
  const std::size_t length = ask(question, to, capacity);
  if (length == 0) return 0;
  base::Secret again(capacity);
  auto* const second = reinterpret_cast<char*>(again.bytes().data());
  if (ask("Again: ", second, capacity) != length || std::memcmp(to, second, length) != 0) {
    fail(Errc::invalid_argument, "the two passphrases differ");
  }
  return length;
}

bool is_given(const KeySource& source) {
  return !source.passphrase_file.empty() || source.passphrase_fd >= 0 || !source.key_file.empty() ||
         !source.identity_file.empty() || !source.recipient.empty() || !source.command.empty();
}

void add_options(CLI::App& app, const std::string& prefix, const std::string& what,
                 KeySource& source) {
  app.add_option("--" + prefix + "passphrase-file", source.passphrase_file,
                 what + ": the first line of a file")
      ->type_name("FILE");
  app.add_option("--" + prefix + "passphrase-fd", source.passphrase_fd,
                 what + ": the first line from a file descriptor")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--" + prefix + "key-file", source.key_file,
                 what + ": a file of at least 32 random bytes")
      ->type_name("FILE");
  app.add_option("--" + prefix + "key-command", source.command,
                 what + ": the first line that a shell command prints")
      ->type_name("COMMAND");
}

}  // namespace

void add_key_options(CLI::App& app, KeySource& source) {
  add_options(app, "", "Opens encrypted stores", source);
  app.add_option("--identity", source.identity_file, "Opens encrypted stores: an identity of age")
      ->type_name("FILE");
}

void add_new_key_options(CLI::App& command, KeySource& source) {
  add_options(command, "new-", "The new secret", source);
  command.add_option("--recipient", source.recipient, "The new secret: that of a recipient of age")
      ->type_name("RECIPIENT");
}

KeySource new_key(KeySource given) {
  if (!is_given(given)) given.prompt = ask_twice;
  return given;
}

void add_encrypt_options(CLI::App& command, bool& encrypt, std::string& recipient,
                         const std::string& what) {
  command.add_flag("--encrypt", encrypt,
                   what +
                       "; its first secret is one of the global options, the environment, "
                       "--recipient, or a new passphrase from the terminal");
  command.add_option("--recipient", recipient, "The first secret: that of a recipient of age")
      ->type_name("RECIPIENT");
}

KeySource first_key(const KeySource& given, const std::string& recipient) {
  if (!recipient.empty()) {
    KeySource out;
    out.recipient = recipient;
    return out;
  }
  const bool makes_slot = !given.passphrase_file.empty() || given.passphrase_fd >= 0 ||
                          !given.key_file.empty() || !given.command.empty();
  return new_key(makes_slot ? given : key_source_of_environment());
}

void use_sign_key(const std::string& file) {
  if (file.empty()) return;
  static_cast<void>(public_key_of(file));
  ::setenv("VELLUM_SIGN_KEY_FILE", std::filesystem::absolute(file).c_str(), 1);
}

void use_keys(const KeySource& given) {
  const KeySource environment = key_source_of_environment();
  KeySource source = is_given(given) ? given : environment;
  source.fingerprint = environment.fingerprint;
  source.encrypted_only = is_given(given) || environment.encrypted_only;
  source.or_encrypted_remote = !environment.encrypted_only;
  source.prompt = ask;
  set_key_source(source);
}

}  // namespace vellum::cli
