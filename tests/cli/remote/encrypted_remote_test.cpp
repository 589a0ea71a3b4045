// vellum remote add --encrypt: a plain store with an encrypted remote, by the program's commands.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

constexpr int kWrongKey = 14;

class EncryptedRemoteCommand : public CliTest {
 protected:
  EncryptedRemoteCommand()
      : key_(file("key", noise(1, 7).substr(0, 64))),
        other_(file("other", noise(1, 8).substr(0, 64))),
        passphrase_(file("passphrase", "correct horse battery staple\n")),
        content_(noise(8, 1)),
        store_(path("s")),
        url_("file://" + path("remote")) {
    must({"init", store_});
    must({"import", store_, "main", file("content", content_), "--snapshot", "v1"});
  }
  // Without a terminal: nothing asks for a passphrase.
  static Result run_alone(const Arguments& arguments) {
    return run(arguments, [] { ::setsid(); });
  }
  static Result with(const std::string& key, Arguments arguments) {
    arguments.insert(arguments.begin(), {"--key-file", key});
    return run_alone(arguments);
  }
  Result with_key(const Arguments& arguments) const { return with(key_, arguments); }
  void add_and_push() const {
    const Result added = with_key({"remote", "add", store_, "origin", url_, "--encrypt"});
    ASSERT_EQ(added.status, 0) << added.err;
    const Result pushed = with_key({"push", store_, "--all"});
    ASSERT_EQ(pushed.status, 0) << pushed.err;
  }

  const std::string key_, other_, passphrase_, content_, store_, url_;
};

TEST_F(EncryptedRemoteCommand, PushesClonesAndReadsWithTheKeyOnly) {
  const Result added = with_key({"--json", "remote", "add", store_, "origin", url_, "--encrypt"});
  ASSERT_EQ(added.status, 0) << added.err;
  const std::string fingerprint = added.json()["fingerprint"];
  EXPECT_EQ(fingerprint.size(), 32u);
  ASSERT_EQ(with_key({"push", store_, "--all"}).status, 0);
  EXPECT_EQ(must({"--json", "remote", "list", store_}).json()["remotes"][0]["fingerprint"],
            fingerprint);
  EXPECT_EQ(with_key({"cat", url_, "v1"}).out, content_);
  const Result cloned = with_key({"clone", url_, path("copy")});
  EXPECT_EQ(cloned.status, 0) << cloned.err;
  EXPECT_EQ(must({"cat", path("copy"), "v1"}).out, content_) << "the clone is plain";
  EXPECT_EQ(with_key({"clone", url_, path("lazy"), "--lazy"}).status, 0);
  EXPECT_EQ(with_key({"cat", path("lazy"), "v1"}).out, content_);
  EXPECT_EQ(run_alone({"cat", path("lazy"), "v1"}).status, kWrongKey);
  must({"import", store_, "main", file("content", content_ + "more"), "--snapshot", "v2"});
  EXPECT_EQ(with_key({"push", store_, "--all"}).status, 0);
  EXPECT_EQ(with_key({"pull", path("copy")}).status, 0);
  EXPECT_EQ(must({"cat", path("copy"), "v2"}).out, content_ + "more");
  EXPECT_EQ(with_key({"verify", url_, "--read-data"}).status, 0);
  // A store of its own needs no key.
  EXPECT_EQ(run_alone({"log", store_}).status, 0);
}

TEST_F(EncryptedRemoteCommand, AWrongKeyIsOneErrorBeforeAnythingIsWritten) {
  add_and_push();
  must({"import", store_, "main", file("content", content_ + "more"), "--snapshot", "v2"});
  for (const Arguments& arguments :
       {Arguments{"push", store_, "--all"}, Arguments{"pull", store_},
        Arguments{"clone", url_, path("copy")}, Arguments{"clone", url_, path("copy"), "--lazy"},
        Arguments{"log", url_}, Arguments{"ls", url_}, Arguments{"stat", url_},
        Arguments{"verify", url_}, Arguments{"cat", url_, "v1"}, Arguments{"gc", url_},
        Arguments{"rm", url_, "v1"}, Arguments{"repair", url_, "--from", store_},
        Arguments{"key", "list", url_},
        Arguments{"key", "remove", store_, "1", "--remote", "origin"},
        Arguments{"replicate", store_, url_}}) {
    for (const bool has_other : {false, true}) {
      const Result result = has_other ? with(other_, arguments) : run_alone(arguments);
      EXPECT_EQ(result.status, kWrongKey) << arguments[0] << ": " << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_EQ(result.out, "");
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path("copy")));
  EXPECT_FALSE(std::filesystem::exists(path("copy") + ".vellum-clone"));
  EXPECT_EQ(with_key({"--json", "ls", url_}).json()["versions"].size(), 2u);
}

TEST_F(EncryptedRemoteCommand, KeysAreChangedByUrlAndByName) {
  add_and_push();
  const Result added =
      with_key({"key", "add", url_, "--new-passphrase-file", passphrase_, "--label", "people"});
  EXPECT_EQ(added.status, 0) << added.err;
  const auto listed = with_key({"--json", "key", "list", store_, "--remote", "origin"}).json();
  ASSERT_EQ(listed["keys"].size(), 2u);
  EXPECT_EQ(listed["keys"][1]["label"], "people");
  EXPECT_EQ(listed, with_key({"--json", "key", "list", url_}).json());
  EXPECT_EQ(run_alone({"--passphrase-file", passphrase_, "cat", url_, "v1"}).out, content_);
  const Result rotated =
      with_key({"key", "rotate", store_, "1", "--remote", "origin", "--new-key-file", other_});
  EXPECT_EQ(rotated.status, 0) << rotated.err;
  EXPECT_EQ(with_key({"cat", url_, "v1"}).status, kWrongKey);
  EXPECT_EQ(with_key({"push", store_, "--all"}).status, kWrongKey);
  EXPECT_EQ(with(other_, {"push", store_, "--all"}).status, 0);
  EXPECT_EQ(with(other_, {"key", "remove", store_, "2", "--remote", "origin"}).status, 0);
  EXPECT_EQ(run_alone({"--passphrase-file", passphrase_, "cat", url_, "v1"}).status, kWrongKey);
  EXPECT_EQ(with(other_, {"key", "remove", url_, "3"}).status, 2) << "the last one";
  must({"remote", "add", store_, "plain", "file://" + path("plain")});
  EXPECT_EQ(run_alone({"key", "list", store_, "--remote", "plain"}).status, 12);
}

// A descriptor can be read once, and a person does not want to be asked twice.
TEST_F(EncryptedRemoteCommand, EachCommandNeedsTheSecretOnce) {
  const auto by_descriptor = [this](Arguments arguments) {
    arguments.insert(arguments.begin(), {"--passphrase-fd", "9"});
    return run(arguments, [this] {
      ::setsid();
      ::dup2(::open(passphrase_.c_str(), O_RDONLY), 9);
    });
  };
  for (const Arguments& arguments :
       {Arguments{"remote", "add", store_, "origin", url_, "--encrypt"},
        Arguments{"push", store_, "--all"}, Arguments{"log", url_}, Arguments{"stat", url_},
        Arguments{"verify", url_, "--from", store_}, Arguments{"cat", url_, "v1"},
        Arguments{"key", "list", url_}, Arguments{"clone", url_, path("lazy"), "--lazy"},
        Arguments{"pull", path("lazy"), "--packs"}, Arguments{"gc", url_},
        Arguments{"repair", url_, "--from", store_},
        Arguments{"key", "add", store_, "--remote", "origin", "--new-key-file", key_},
        Arguments{"rm", url_, "v1"}}) {
    const Result result = by_descriptor(arguments);
    EXPECT_EQ(result.status, 0) << arguments[0] << ": " << result.err;
  }
}

TEST_F(EncryptedRemoteCommand, PlainAndEncryptedAreNotExchanged) {
  add_and_push();
  const Result plain = run_alone({"remote", "add", store_, "second", url_});
  EXPECT_EQ(plain.status, kWrongKey);
  EXPECT_TRUE(contains(plain.err, "--encrypt")) << plain.err;
  std::filesystem::rename(path("remote"), path("moved"));
  must({"remote", "add", store_, "plain", url_});
  must({"push", store_, "--all", "--remote", "plain"});
  const Result pushed = with_key({"push", store_, "--all"});
  EXPECT_EQ(pushed.status, kWrongKey);
  EXPECT_TRUE(contains(pushed.err, "the remote is not encrypted")) << pushed.err;
  EXPECT_EQ(with_key({"remote", "add", store_, "third", url_, "--encrypt"}).status, kWrongKey);
  EXPECT_EQ(with_key({"cat", url_, "v1"}).status, kWrongKey) << "a given secret wants encryption";
}

// A secret says that the remote of the command is encrypted.
TEST_F(EncryptedRemoteCommand, AGivenSecretIsForNoPlainRemote) {
  add_and_push();
  must({"remote", "add", store_, "plain", "file://" + path("plain")});
  const std::string typo = "file://" + path("typo");
  for (const Arguments& arguments : {Arguments{"replicate", store_, typo},
                                     Arguments{"push", store_, "--all", "--remote", "plain"},
                                     Arguments{"pull", store_, "--remote", "plain"},
                                     Arguments{"remote", "add", store_, "second", typo},
                                     Arguments{"remote", "set-url", store_, "plain", typo},
                                     Arguments{"repair", typo, "--from", store_}}) {
    const Result result = with_key(arguments);
    EXPECT_EQ(result.status, kWrongKey) << arguments[0] << ": " << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("typo")));
  EXPECT_FALSE(std::filesystem::exists(path("plain") + "/store"));
  must({"push", store_, "--all", "--remote", "plain"});
}

TEST_F(EncryptedRemoteCommand, ALostRemoteAndReplacedKeySlotsAreSaid) {
  add_and_push();
  std::filesystem::remove_all(path("remote"));
  const Result pushed = with_key({"--quiet", "push", store_, "--all"});
  EXPECT_EQ(pushed.status, 0) << pushed.err;
  EXPECT_TRUE(contains(pushed.err, "vellum: warning: " + url_ + ": the remote is empty"))
      << pushed.err;
  EXPECT_EQ(with_key({"push", store_, "--all"}).err, "");
  const Result second =
      with(other_, {"remote", "add", store_, "second", "file://" + path("second"), "--encrypt"});
  ASSERT_EQ(second.status, 0) << second.err;
  std::filesystem::copy_file(path("second") + "/store/vellum.keys",
                             path("remote") + "/store/vellum.keys",
                             std::filesystem::copy_options::overwrite_existing);
  const Result refused = with_key({"push", store_, "--all"});
  EXPECT_EQ(refused.status, kWrongKey);
  EXPECT_TRUE(contains(refused.err, "vellum repair " + url_ + " --from " + store_)) << refused.err;
  const Result repaired = with_key({"repair", url_, "--from", store_});
  EXPECT_EQ(repaired.status, 0) << repaired.err;
  EXPECT_TRUE(contains(repaired.err, "its key slots did not open")) << repaired.err;
  EXPECT_EQ(with_key({"cat", url_, "v1"}).out, content_);
}

TEST_F(EncryptedRemoteCommand, AnEncryptedStoreNeedsNoSuchRemote) {
  must({"init", path("e"), "--encrypt", "--key-file", key_});
  const Result result = with_key({"remote", "add", path("e"), "origin", url_, "--encrypt"});
  EXPECT_EQ(result.status, 12) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("remote")));
  EXPECT_EQ(run_alone({"remote", "add", store_, "origin", url_, "--recipient", "age1"}).status, 2);
  EXPECT_EQ(run_alone({"remote", "add", store_, "origin", url_, "--encrypt"}).status, 2)
      << "there is no terminal";
  EXPECT_FALSE(std::filesystem::exists(path("remote") + "/store"));
}

}  // namespace
}  // namespace vellum::cli_test
