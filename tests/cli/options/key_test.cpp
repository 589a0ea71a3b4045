// vellum init --encrypt and vellum key: secrets open a store, and are never printed.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <csignal>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

constexpr int kWrongKey = 14;
constexpr const char* kPassphrase = "correct horse battery staple";

class KeyCommand : public CliTest {
 protected:
  KeyCommand()
      : key_(file("key", noise(1, 7).substr(0, 64))),
        passphrase_(file("passphrase", std::string(kPassphrase) + "\n")),
        content_(noise(8, 1)),
        store_(path("s")) {
    must({"init", store_, "--encrypt", "--key-file", key_});
    must({"--key-file", key_, "import", store_, "main", file("content", content_), "--snapshot",
          "v1"});
  }
  // Without a terminal: nothing asks for a passphrase.
  static Result run_alone(const Arguments& arguments) {
    return run(arguments, [] { ::setsid(); });
  }
  Result with_key(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"--key-file", key_});
    return run_alone(arguments);
  }

  const std::string key_, passphrase_, content_, store_;
};

TEST_F(KeyCommand, OnlyASecretOpensTheStore) {
  EXPECT_EQ(with_key({"cat", store_, "v1"}).out, content_);
  EXPECT_EQ(with_key({"verify", store_, "--read-data"}).status, 0);
  const Result none = run_alone({"cat", store_, "v1"});
  EXPECT_EQ(none.status, kWrongKey);
  EXPECT_TRUE(contains(none.err, "is encrypted, and no key was given")) << none.err;
  const Result wrong = run_alone({"--key-file", file("other", noise(1, 8)), "cat", store_, "v1"});
  EXPECT_EQ(wrong.status, kWrongKey);
  EXPECT_EQ(wrong.out, "");
  const Result json = run_alone({"--json", "stat", store_});
  EXPECT_EQ(json.json()["error"]["code"], "wrong_key");
}

TEST_F(KeyCommand, SlotsAreAddedListedReplacedAndRemoved) {
  EXPECT_EQ(
      with_key({"key", "add", store_, "--new-passphrase-file", passphrase_, "--label", "people"})
          .status,
      0);
  const auto listed = with_key({"--json", "key", "list", store_}).json()["keys"];
  ASSERT_EQ(listed.size(), 2u);
  const std::string fingerprint = with_key({"--json", "key", "list", store_}).json()["fingerprint"];
  EXPECT_EQ(fingerprint.size(), 32u);
  EXPECT_TRUE(contains(with_key({"key", "list", store_}).out, fingerprint));
  const auto status_with = [&](const std::string& wanted) {
    return run({"--key-file", key_, "stat", store_},
               [&] {
                 ::setsid();
                 ::setenv("VELLUM_KEY_FINGERPRINT", wanted.c_str(), 1);
               })
        .status;
  };
  EXPECT_EQ(status_with(fingerprint), 0);
  EXPECT_EQ(status_with(std::string(32, '0')), kWrongKey);
  EXPECT_EQ(listed[0]["kind"], "key-file");
  EXPECT_EQ(listed[1]["kind"], "passphrase");
  EXPECT_EQ(listed[1]["label"], "people");

  EXPECT_EQ(run_alone({"--passphrase-file", passphrase_, "cat", store_, "v1"}).out, content_);
  const Result by_environment = run({"cat", store_, "v1"}, [this] {
    ::setsid();
    ::setenv("VELLUM_PASSPHRASE_FILE", passphrase_.c_str(), 1);
  });
  EXPECT_EQ(by_environment.out, content_);
  const Result by_descriptor = run({"--passphrase-fd", "9", "cat", store_, "v1"}, [this] {
    ::setsid();
    ::dup2(::open(passphrase_.c_str(), O_RDONLY), 9);
  });
  EXPECT_EQ(by_descriptor.out, content_);

  EXPECT_EQ(with_key({"key", "rotate", store_, "2", "--new-key-command", "echo another"}).status,
            0);
  EXPECT_EQ(run_alone({"--passphrase-file", passphrase_, "cat", store_, "v1"}).status, kWrongKey);
  EXPECT_EQ(run_alone({"--key-command", "echo another", "cat", store_, "v1"}).out, content_);
  EXPECT_EQ(with_key({"key", "remove", store_, "1"}).status, 0);
  EXPECT_EQ(with_key({"cat", store_, "v1"}).status, kWrongKey);
}

// A descriptor can be read once, and a person does not want to be asked twice.
TEST_F(KeyCommand, EachCommandNeedsTheSecretOnce) {
  ASSERT_EQ(with_key({"key", "add", store_, "--new-passphrase-file", passphrase_}).status, 0);
  const auto by_descriptor = [this](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--passphrase-fd", "9"});
    return run(arguments, [this] {
      ::setsid();
      ::dup2(::open(passphrase_.c_str(), O_RDONLY), 9);
    });
  };
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"restore", store_, "v1", path("restored")},
                                             {"log", "--commits", store_},
                                             {"diff", store_, "v1", "main"},
                                             {"rm", "--dry-run", store_, "v1"},
                                             {"rm", store_, "v1"}}) {
    const Result result = by_descriptor(arguments);
    EXPECT_EQ(result.status, 0) << arguments.front() << ": " << result.err;
  }
  EXPECT_EQ(read_file(path("restored")), content_);
  const Result missing = by_descriptor({"show", store_, "v2"});
  EXPECT_EQ(missing.status, 3) << missing.err;
}

TEST_F(KeyCommand, EachCommandWithAUrlNeedsTheSecretOnce) {
  const std::string url = "file://" + path("origin"), later = "@{2100-01-01}";
  ASSERT_EQ(with_key({"key", "add", store_, "--new-passphrase-file", passphrase_}).status, 0);
  ASSERT_EQ(with_key({"remote", "add", store_, "origin", url}).status, 0);
  const Result pushed = with_key({"push", store_, "--all"});
  ASSERT_EQ(pushed.status, 0) << pushed.err;
  const auto by_descriptor = [this](Arguments arguments) {
    arguments.insert(arguments.begin(), {"--passphrase-fd", "9"});
    return run(arguments, [this] {
      ::setsid();
      ::dup2(::open(passphrase_.c_str(), O_RDONLY), 9);
    });
  };
  const Result missing = by_descriptor({"cat", url, "v9"});
  EXPECT_EQ(missing.status, 3) << missing.err;
  for (const Arguments& arguments :
       {Arguments{"log", url}, Arguments{"stat", url}, Arguments{"verify", url, "--read-data"},
        Arguments{"verify", url, "--from", store_}, Arguments{"cat", url, "v1"},
        Arguments{"key", "list", url}, Arguments{"clone", url, path("copy"), later},
        Arguments{"clone", url, path("lazy"), "--lazy"}, Arguments{"pull", path("copy")},
        Arguments{"gc", url}, Arguments{"repair", url, "--from", store_},
        Arguments{"rm", url, "v1", "--dry-run"}, Arguments{"forget", url, "--keep-last", "1"},
        Arguments{"rm", url, "v1"}}) {
    EXPECT_EQ(run_alone(arguments).status, kWrongKey) << arguments.front();
    const Result result = by_descriptor(arguments);
    EXPECT_EQ(result.status, 0) << arguments.front() << ": " << result.err;
  }
  EXPECT_TRUE(with_key({"cat", path("copy"), "v1"}).out == content_);
  const auto slots = with_key({"--json", "key", "list", url}).json();
  EXPECT_EQ(slots["keys"].size(), 2u);
  EXPECT_EQ(slots["fingerprint"],
            with_key({"--json", "key", "list", store_}).json()["fingerprint"]);
  const Result refused = with_key({"key", "remove", url, "1"});
  EXPECT_TRUE(contains(refused.err, "change these, and push")) << refused.err;
}

TEST_F(KeyCommand, ASecretThatCannotBeReadHidesNoOther) {
  ASSERT_EQ(with_key({"key", "add", store_, "--new-passphrase-file", passphrase_}).status, 0);
  EXPECT_EQ(run_alone({"--key-file", path("nowhere"), "--passphrase-file", passphrase_, "cat",
                       store_, "v1"})
                .out,
            content_);
  const Result alone = run_alone({"--key-file", path("nowhere"), "cat", store_, "v1"});
  EXPECT_EQ(alone.status, kWrongKey) << alone.err;
  EXPECT_TRUE(contains(alone.err, "nowhere")) << alone.err;
}

TEST_F(KeyCommand, RunRefusesAnEncryptedStoreBeforeItChangesAnything) {
  const std::string target = file("file", "content");
  const Result result =
      with_key({"run", "--store", store_, "--file", target, "--", "touch", path("ran")});
  EXPECT_NE(result.status, 0);
  EXPECT_TRUE(contains(result.err, "encrypted")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
  EXPECT_EQ(with_key({"--json", "ls", store_}).json()["versions"].size(), 2u);
}

TEST_F(KeyCommand, InitPrintsTheFingerprintInOneLine) {
  const Result made = with_key({"init", path("t"), "--encrypt"});
  const std::string fingerprint =
      with_key({"--json", "key", "list", path("t")}).json()["fingerprint"];
  EXPECT_TRUE(made.out.ends_with(" is " + fingerprint + "\n")) << made.out;
  EXPECT_FALSE(contains(made.out, "\\x")) << made.out;
}

// Who may write the directory may have put a plain store there.
TEST_F(KeyCommand, ASecretRefusesPlainStores) {
  const std::string plain = path("plain"), fresh = path("fresh");
  must({"init", plain});
  const Result opened = with_key({"stat", plain});
  EXPECT_EQ(opened.status, kWrongKey);
  EXPECT_TRUE(contains(opened.err, "the store is not encrypted")) << opened.err;
  EXPECT_EQ(with_key({"import", plain, "main", path("content")}).status, kWrongKey);
  EXPECT_EQ(with_key({"import", fresh, "main", path("content")}).status, kWrongKey);
  EXPECT_FALSE(std::filesystem::exists(fresh));
  EXPECT_EQ(run_alone({"stat", plain}).status, 0);
  const Result by_environment = run({"stat", plain}, [] {
    ::setsid();
    ::setenv("VELLUM_ENCRYPTED_ONLY", "1", 1);
  });
  EXPECT_EQ(by_environment.status, kWrongKey);
}

// What the terminal shows until it has shown `end`.
std::string shown_until(int terminal, const std::string& end) {
  std::string out;
  pollfd input{terminal, POLLIN, 0};
  while (!contains(out, end) && ::poll(&input, 1, 60'000) == 1) {
    char next = 0;
    if (::read(terminal, &next, 1) != 1) break;
    out += next;
  }
  return out;
}

bool echoes(int terminal) {
  termios settings{};
  return ::tcgetattr(terminal, &settings) == 0 && (settings.c_lflag & ECHO) != 0;
}

TEST_F(KeyCommand, AnInterruptedPromptLeavesTheEchoOn) {
  ASSERT_EQ(with_key({"key", "add", store_, "--new-passphrase-file", passphrase_}).status, 0);
  int terminal = -1, other_end = -1;
  ASSERT_EQ(::openpty(&terminal, &other_end, nullptr, nullptr, nullptr), 0);
  ASSERT_TRUE(echoes(other_end));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    ::ioctl(other_end, TIOCSCTTY, 0);
    become_vellum({"cat", store_, "v1"});
  }
  EXPECT_TRUE(contains(shown_until(terminal, "Passphrase of "), "Passphrase of "));
  EXPECT_FALSE(echoes(other_end));
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);  // Ctrl-C
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_TRUE(echoes(other_end));
  ::close(terminal);
  ::close(other_end);
}

// An identity is secret; it was to be a recipient.
TEST_F(KeyCommand, AnIdentityGivenAsARecipientIsNotPrinted) {
  const std::string identity =
      "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
  const Result added = with_key({"key", "add", store_, "--recipient", identity});
  EXPECT_EQ(added.status, 2);
  EXPECT_TRUE(contains(added.err, "is none of age")) << added.err;
  EXPECT_FALSE(contains(added.err + added.out, "QQQQ"));
}

TEST_F(KeyCommand, NoSecretIsPrinted) {
  const Result wrong = run_alone({"--passphrase-file", passphrase_, "cat", store_, "v1"});
  EXPECT_EQ(wrong.status, kWrongKey);
  EXPECT_FALSE(contains(wrong.err + wrong.out, kPassphrase));
  const Result short_key = run_alone({"init", path("t"), "--encrypt", "--key-file", passphrase_});
  EXPECT_EQ(short_key.status, 2) << "a passphrase is no key file";
  EXPECT_FALSE(contains(short_key.err, kPassphrase));
  EXPECT_EQ(run_alone({"init", path("t"), "--encrypt"}).status, 2) << "there is no terminal";
}

TEST_F(KeyCommand, RefusesWhatWouldBePlain) {
  for (const Arguments& arguments : {Arguments{"attach", store_, "main", path("content")},
                                     Arguments{"repair", store_, "--to", path("saved")}}) {
    const Result result = with_key(arguments);
    EXPECT_EQ(result.status, 12) << arguments[0] << ": " << result.err;
    EXPECT_TRUE(contains(result.err, "the store is encrypted")) << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("saved")));
}

}  // namespace
}  // namespace vellum::cli_test
