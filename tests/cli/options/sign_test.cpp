// --sign-key, verify --signed-by, log --signatures, branch --only-signed and prove.
#include <fmt/format.h>

#include <fstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

constexpr int kUntrusted = 15;

class SignCommand : public CliTest {
 protected:
  SignCommand()
      : key_(path("key.pem")),
        other_(path("other.pem")),
        content_(noise(40, 1) + "the end, in the middle of a page"),
        store_(path("s")) {
    make_key(key_);
    make_key(other_);
    must({"init", store_});
    must({"--sign-key", key_, "import", store_, "main", file("content", content_), "--snapshot",
          "v1"});
  }
  void make_key(const std::string& to) {
    ASSERT_EQ(run_program({"openssl", "genpkey", "-algorithm", "ed25519", "-out", to}).status, 0);
    ASSERT_EQ(run_program({"openssl", "pkey", "-in", to, "-pubout", "-out", to + ".pub"}).status,
              0);
  }
  Result verify(const std::string& key) const {
    return run({"verify", store_, "--signed-by", key + ".pub"});
  }

  const std::string key_, other_, content_, store_;
};

TEST_F(SignCommand, SignsVerifiesAndLists) {
  const Result good = verify(key_);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_TRUE(contains(good.out, "signed     'v1', number 1")) << good.out;
  const Result wrong = verify(other_);
  EXPECT_EQ(wrong.status, kUntrusted);
  EXPECT_TRUE(contains(wrong.out, "signed by another key")) << wrong.out;
  EXPECT_EQ(
      run({"verify", store_, "--signed-by", other_ + ".pub", "--signed-by", key_ + ".pub"}).status,
      0);

  must({"snapshot", store_, "v2"});
  const auto json = run({"--json", "verify", store_, "--signed-by", key_ + ".pub"}).json();
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["versions"][0]["ok"], true);
  EXPECT_EQ(json["versions"][1]["problem"], "not signed");
  EXPECT_EQ(json["error"]["code"], "untrusted");
  EXPECT_EQ(run({"verify", store_, "v1", "--signed-by", key_ + ".pub"}).status, 0);
  EXPECT_EQ(run({"verify", store_, "--read-data"}).status, 0);

  const std::string list = run({"log", store_, "--signatures"}).out;
  EXPECT_TRUE(contains(list, "not signed")) << list;
  const auto versions = run({"--json", "log", store_}).json()["versions"];
  for (const auto& v : versions) {
    EXPECT_EQ(v["signature"].is_null(), v["name"] != "v1");
    if (v["name"] == "v1") {
      EXPECT_EQ(v["signature"]["key"].get<std::string>().size(), 64u);
    }
  }
}

// A key that is decrypted into a pipe is read once.
TEST_F(SignCommand, AKeyFromAPipeSigns) {
  const Result made = run_program(
      {"bash", "-c", VELLUM_CLI " --sign-key <(cat '" + key_ + "') snapshot '" + store_ + "' v2"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(verify(key_).status, 0) << verify(key_).out;
}

// A store without snapshots has nothing that is signed, and a branch's head is not.
TEST_F(SignCommand, VerifySaysWhatItHasNotChecked) {
  const std::string empty = path("empty");
  must({"init", empty});
  must({"import", empty, "main", file("unsigned", noise(3, 9))});
  const Result nothing = run({"verify", empty, "--signed-by", key_ + ".pub"});
  EXPECT_EQ(nothing.status, kUntrusted);
  EXPECT_TRUE(contains(nothing.err, "no snapshot")) << nothing.err;
  EXPECT_TRUE(contains(nothing.out, "not signed: the head of branch 'main'")) << nothing.out;
  EXPECT_EQ(run({"--json", "verify", empty, "--signed-by", key_ + ".pub"}).json()["ok"], false);

  const Result good = verify(key_);
  EXPECT_EQ(good.status, 0);
  EXPECT_TRUE(contains(good.out, "the head of branch 'main' is 'v1'")) << good.out;
  must({"import", store_, "main", file("unsigned", noise(3, 9))});
  EXPECT_TRUE(contains(verify(key_).out, "not signed: the head of branch 'main'"));
}

TEST_F(SignCommand, ADamagedRefDoesNotEndTheCheck) {
  must({"--sign-key", key_, "import", store_, "main", file("next", noise(50, 2)), "--snapshot",
        "v2"});
  std::ofstream(store_ + "/snapshots/v1.ref", std::ios::binary | std::ios::trunc) << "damage";
  const Result bad = verify(key_);
  EXPECT_EQ(bad.status, kUntrusted);
  EXPECT_TRUE(contains(bad.out, "untrusted  'v1'")) << bad.out;
  EXPECT_TRUE(contains(bad.out, "signed     'v2'")) << bad.out;
}

TEST_F(SignCommand, MissingAndWrongKeyFilesAreNamed) {
  const Result none = run({"--sign-key", path("none"), "snapshot", store_, "x"});
  EXPECT_EQ(none.status, 3);
  EXPECT_TRUE(contains(none.err, "none"));
  const Result wrong = run({"--sign-key", key_ + ".pub", "snapshot", store_, "x"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "no private key of Ed25519")) << wrong.err;
  EXPECT_EQ(run({"verify", store_, "--signed-by", key_}).status, 2);
  EXPECT_EQ(run({"verify", store_, "v1"}).status, 2);
}

TEST_F(SignCommand, ABranchWithSignersRefusesOthers) {
  must({"branch", store_, "main", "--only-signed", key_ + ".pub"});
  EXPECT_EQ(run({"snapshot", store_, "v2"}).status, kUntrusted);
  EXPECT_EQ(run({"--sign-key", other_, "snapshot", store_, "v2"}).status, kUntrusted);
  EXPECT_EQ(run({"import", store_, "main", file("next", noise(3, 2)), "--snapshot", "v2"}).status,
            kUntrusted);
  EXPECT_EQ(run({"cat", store_, "main"}).out, content_);  // nothing was committed
  must({"--sign-key", key_, "snapshot", store_, "v2"});
  must({"branch", store_, "main", "--any-signer"});
  must({"snapshot", store_, "v3"});
}

// A push, a pull, a clone and a lazy clone keep signatures, and an encrypted store has them.
TEST_F(SignCommand, TravelsWithItsVersion) {
  must({"remote", "add", store_, "origin", "file://" + path("remote")});
  must({"push", store_, "--all"});
  const std::string url = "file://" + path("remote");
  EXPECT_EQ(run({"verify", url, "--signed-by", key_ + ".pub"}).status, 0);
  for (const bool lazy : {false, true}) {
    const std::string copy = path(lazy ? "lazy" : "whole");
    Arguments clone{"clone", url, copy};
    if (lazy) clone.push_back("--lazy");
    must(clone);
    EXPECT_EQ(run({"verify", copy, "--signed-by", key_ + ".pub"}).status, 0);
    must({"prove", copy, "v1", "0", "-o", path(lazy ? "proof-lazy" : "proof-whole")});
  }
  EXPECT_EQ(read_file(path("proof-lazy")), read_file(path("proof-whole")));
  // The pull of a later one finds its parent.
  must({"--sign-key", key_, "import", store_, "main", file("next", noise(50, 2)), "--snapshot",
        "v2"});
  must({"push", store_, "--all"});
  must({"pull", path("whole")});
  const auto json = run({"--json", "verify", path("whole"), "--signed-by", key_ + ".pub"}).json();
  EXPECT_EQ(json["versions"].size(), 2u);
  EXPECT_EQ(json["versions"][1]["ok"], true);
  EXPECT_TRUE(json["versions"][1]["chain_ends_before"].is_null());
}

TEST_F(SignCommand, APullRespectsTheSigners) {
  must({"remote", "add", store_, "origin", "file://" + path("remote")});
  must({"push", store_, "--all"});
  must({"clone", "file://" + path("remote"), path("copy")});
  must({"branch", path("copy"), "main", "--only-signed", key_ + ".pub"});
  must({"snapshot", store_, "plain"});
  must({"--sign-key", other_, "snapshot", store_, "others"});
  must({"--sign-key", key_, "snapshot", store_, "good"});
  must({"push", store_, "--all"});
  const Result pulled = run({"pull", path("copy")});
  EXPECT_EQ(pulled.status, kUntrusted) << pulled.err;
  const std::string names = run({"log", path("copy"), "--names"}).out;
  EXPECT_TRUE(contains(names, "good")) << names;
  EXPECT_FALSE(contains(names, "plain") || contains(names, "others")) << names;
}

TEST_F(SignCommand, EncryptedStoresHaveSignatures) {
  const std::string secret = file("secret", noise(1, 3)), store = path("e");
  must({"init", store, "--encrypt", "--key-file", secret});
  must({"--key-file", secret, "--sign-key", key_, "import", store, "main",
        file("plain", noise(30, 4)), "--snapshot", "v1"});
  EXPECT_EQ(run({"--key-file", secret, "verify", store, "--signed-by", key_ + ".pub"}).status, 0);
  EXPECT_EQ(run({"--key-file", secret, "verify", store, "--read-data"}).status, 0);
}

class ProveCommand : public SignCommand {
 protected:
  Result check(const std::string& proof, const std::string& key, const std::string& page) const {
    return run_program({"python3", std::string(VELLUM_SOURCE_DIR) + "/examples/check_proof.py",
                        proof, key + ".pub", page});
  }
};

TEST_F(ProveCommand, AProgramWithoutVellumChecksIt) {
  struct Case {
    std::size_t offset, length;
  };
  const std::size_t end = content_.size() / 4096 * 4096;
  for (const Case c : {Case{0, 4096},
                       {4096, 8192},
                       {12288, 5 * 4096},
                       {end, content_.size() - end},
                       {0, content_.size()}}) {
    const std::string proof = path(fmt::format("proof-{}-{}", c.offset, c.length));
    must({"prove", store_, "v1", std::to_string(c.offset) + "+" + std::to_string(c.length), "-o",
          proof});
    const std::string page = file("page", content_.substr(c.offset, c.length));
    const Result good = check(proof, key_, page);
    EXPECT_EQ(good.status, 0) << good.err;
    EXPECT_TRUE(contains(good.out, "v1: pages")) << good.out;

    if (c.length != 8192) continue;  // a program of Python starts slowly
    std::string other = content_.substr(c.offset, c.length);
    other[5] = static_cast<char>(other[5] ^ 1);
    EXPECT_NE(check(proof, key_, file("other-page", other)).status, 0);
    EXPECT_NE(check(proof, other_, page).status, 0);
    const std::string bytes = read_file(proof);
    EXPECT_NE(check(file("cut", bytes.substr(0, bytes.size() - 1)), key_, page).status, 0);
    EXPECT_NE(check(file("longer", bytes + "x"), key_, page).status, 0);
    for (const std::size_t at : {std::size_t{6}, std::size_t{20}, bytes.size() - 1}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      EXPECT_NE(check(file("changed", changed), key_, page).status, 0) << at;
    }
  }
}

TEST_F(ProveCommand, WhatIsNotSignedHasNoProof) {
  must({"snapshot", store_, "plain"});
  EXPECT_EQ(run({"prove", store_, "plain", "0"}).status, kUntrusted);
  EXPECT_EQ(run({"prove", store_, "v1", "10M"}).status, 2);
  EXPECT_EQ(run({"prove", store_, "v1", "0+0"}).status, 2);
  EXPECT_EQ(run({"prove", store_, "none", "0"}).status, 3);
}

}  // namespace
}  // namespace vellum::cli_test
