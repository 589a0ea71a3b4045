// The primitives of encrypted stores, with published vectors where there are any.
#include <gtest/gtest.h>

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/rand.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include "base/bytes/hex.hpp"
#include "base/crypto/argon2.hpp"
#include "base/crypto/bech32.hpp"
#include "base/crypto/hkdf.hpp"
#include "base/crypto/secret.hpp"
#include "base/crypto/secret_input.hpp"
#include "base/crypto/store_keys.hpp"
#include "base/crypto/x25519.hpp"
#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"

namespace vellum::base {
namespace {

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

Secret filled(std::size_t bytes, int value) {
  Secret out(bytes);
  std::ranges::fill(out.bytes(), static_cast<std::byte>(value));
  return out;
}

Secret text_secret(std::string_view text) { return Secret(std::as_bytes(std::span(text))); }

// RFC 5869, A.1.
TEST(Hkdf, HasTheResultsOfTheStandard) {
  std::vector<std::byte> out(42);
  const auto info = from_hex("f0f1f2f3f4f5f6f7f8f9");
  hkdf_sha256(from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
              from_hex("000102030405060708090a0b0c"),
              {reinterpret_cast<const char*>(info.data()), info.size()}, out);
  EXPECT_EQ(hex(out),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
}

// The GCM specification's test case 14.
TEST(SealWith, OpensTheMessageOfTheStandard) {
  auto text = from_hex("cea7403d4d606b6e074ec5d3baf39d18");
  auto seal = from_hex("000000000000000000000000d0d1c8a799996bf0265b98b5d48ab919");
  const Secret key = filled(kKeyBytes, 0);
  ASSERT_TRUE(open_with(key.bytes(), {}, text, seal));
  EXPECT_EQ(text, std::vector<std::byte>(16));
  EXPECT_FALSE(open_with(key.bytes(), {}, text, seal)) << "no longer the encrypted text";
}

TEST(StoreKeys, OpenOnlyWhatTheySealed) {
  const StoreKeys keys(filled(kKeyBytes, 1)), others(filled(kKeyBytes, 2));
  const MessageKey pack{KeyUse::pack, 7, 0};
  const auto clear = from_hex("0011223344");
  const auto plain = from_hex("48656c6c6f2c20776f726c6421");
  auto text = plain;
  std::vector<std::byte> seal(kSealBytes);
  keys.seal(pack, clear, text, seal);
  EXPECT_NE(text, plain);

  const auto opens = [&](const StoreKeys& with, const MessageKey& key,
                         const std::vector<std::byte>& c, std::vector<std::byte> t,
                         const std::vector<std::byte>& s) {
    const bool good = with.open(key, c, t, s);
    EXPECT_EQ(t, good ? plain : std::vector<std::byte>(t.size()));
    return good;
  };
  EXPECT_TRUE(opens(keys, pack, clear, text, seal));
  EXPECT_FALSE(opens(others, pack, clear, text, seal));
  for (const MessageKey& other :
       {MessageKey{KeyUse::pack, 8, 0}, MessageKey{KeyUse::pack, 7, 1},
        MessageKey{KeyUse::journal, 7, 0}, MessageKey{KeyUse::file, 7, 0}}) {
    EXPECT_FALSE(opens(keys, other, clear, text, seal));
  }
  const auto flipped = [](std::vector<std::byte> bytes, std::size_t i) {
    bytes[i] ^= std::byte{1};
    return bytes;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(opens(keys, pack, clear, flipped(text, i), seal));
  }
  for (std::size_t i = 0; i < clear.size(); ++i) {
    EXPECT_FALSE(opens(keys, pack, flipped(clear, i), text, seal));
  }
  for (std::size_t i = 0; i < seal.size(); ++i) {
    EXPECT_FALSE(opens(keys, pack, clear, text, flipped(seal, i)));
  }
  EXPECT_TRUE(opens(keys, pack, clear, text, seal)) << "a failure leaves no state";
}

// Content that is named by its hash: the same message is the same bytes, and no other has its nonce.
TEST(StoreKeys, SealAlikeGivesTheSameBytesForTheSameMessageOnly) {
  const StoreKeys keys(filled(kKeyBytes, 1)), others(filled(kKeyBytes, 2));
  const MessageKey list{KeyUse::file, 7, 0};
  const auto sealed_alike = [&](const StoreKeys& with, std::string clear, std::string text) {
    const auto clear_bytes = std::as_bytes(std::span(clear));
    std::vector<std::byte> seal(kSealBytes);
    const std::string plain = text;
    with.seal_alike(list, clear_bytes, std::as_writable_bytes(std::span(text)), seal);
    EXPECT_NE(text, plain);
    std::string opened = text;
    EXPECT_TRUE(with.open(list, clear_bytes, std::as_writable_bytes(std::span(opened)), seal));
    EXPECT_EQ(opened, plain);
    return hex(seal) + text;
  };
  const auto nonce = [](const std::string& sealed) { return sealed.substr(0, 2 * kNonceBytes); };
  const std::string first = sealed_alike(keys, "clear", "some text");
  EXPECT_EQ(sealed_alike(keys, "clear", "some text"), first);
  EXPECT_NE(nonce(sealed_alike(keys, "clear", "some tex_")), nonce(first));
  EXPECT_NE(nonce(sealed_alike(keys, "clea_", "some text")), nonce(first));
  EXPECT_NE(nonce(sealed_alike(keys, "clearsome", " text")), nonce(first));
  EXPECT_NE(nonce(sealed_alike(others, "clear", "some text")), nonce(first));
}

TEST(StoreKeys, NeverUseANonceTwice) {
  const StoreKeys keys(filled(kKeyBytes, 1));
  std::set<std::string> nonces;
  std::array<std::byte, kSealBytes> seal;
  for (int i = 0; i < 10'000; ++i) {
    std::array<std::byte, 16> text{};
    keys.seal({KeyUse::journal, 1, 1}, {}, text, seal);
    EXPECT_TRUE(nonces.insert(hex(std::span(seal).first(kNonceBytes))).second);
  }
}

// Both of Debian's libraries compute this.
TEST(Argon2, HasTheResultOfTheOtherImplementations) {
  std::vector<std::byte> salt(kArgon2SaltBytes);
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<std::byte>(i);
  const Secret key = argon2id(text_secret("correct horse"), salt, {2, 1024});
  EXPECT_EQ(hex(key.bytes()), "77237b8a217dfd77699617e3893817f9fa215bff881849f3c007154da0b4788d");
  EXPECT_NE(hex(argon2id(text_secret("correct horsf"), salt, {2, 1024}).bytes()), hex(key.bytes()));
}

TEST(Argon2, BoundsItsCost) {
  EXPECT_TRUE(cost_ok({}));
  EXPECT_FALSE(cost_ok({0, 1024}));
  EXPECT_FALSE(cost_ok({kMaxArgon2Passes + 1, 1024}));
  EXPECT_FALSE(cost_ok({1, 7}));
  EXPECT_FALSE(cost_ok({1, kMaxArgon2MemoryKib + 1}));
}

// The private key of 32 bytes 0x42, as age writes it, and its recipient.
TEST(Bech32, ReadsAndWritesKeysOfAge) {
  const Secret key =
      bech32_decode("age-secret-key-",
                    "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZ"
                    "GFPQ4EGAEX");
  ASSERT_EQ(hex(key.bytes()), hex(filled(kKeyBytes, 0x42).bytes()));
  const std::string recipient = bech32_encode("age", x25519_public(key));
  EXPECT_EQ(recipient, "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj");
  EXPECT_EQ(hex(bech32_decode("age", recipient).bytes()), hex(x25519_public(key)));
}

TEST(Bech32, RefusesEveryChangedLetter) {
  const std::string good = bech32_encode("age", x25519_public(filled(kKeyBytes, 3)));
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char c : std::string("qpz1B\x80")) {
      std::string bad = good;
      if (bad[i] == c) continue;
      bad[i] = c;
      EXPECT_TRUE(bech32_decode("age", bad).empty()) << bad;
    }
    EXPECT_TRUE(bech32_decode("age", good.substr(0, i)).empty());
  }
}

TEST(X25519, BothSidesShareAKey) {
  const Secret a = new_x25519_key(), b = new_x25519_key();
  EXPECT_EQ(hex(x25519_shared(a, x25519_public(b)).bytes()),
            hex(x25519_shared(b, x25519_public(a)).bytes()));
  EXPECT_ERRC(x25519_shared(a, X25519Public{}), Errc::invalid_argument);
}

// The flags of the mapping that holds an address.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) here = at >= from && at < to;
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Secrets, AreNotInCoreDumps) {
  const Secret key = Secret::random(kKeyBytes);
  EXPECT_NE(mapping_flags(key.bytes().data()).find(" dd "), std::string::npos);
}

int same_bytes(unsigned char* to, int n) {
  std::fill_n(to, n, static_cast<unsigned char>(7));
  return 1;
}
int always_ready() { return 1; }

// A generator in the process repeats itself when the process, or its machine, is resumed twice.
TEST(Secrets, RandomBytesAreTheKernels) {
  static const RAND_METHOD repeating{nullptr, same_bytes, nullptr,
                                     nullptr, same_bytes, always_ready};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ASSERT_EQ(RAND_set_rand_method(&repeating), 1);
  std::array<std::byte, 1000> a{}, b{};
  fill_random(a);
  fill_random(b);
  RAND_set_rand_method(nullptr);
#pragma GCC diagnostic pop
  EXPECT_NE(a, b);
  fill_random({});
}

TEST(Secrets, ACommandThatPrintsTooMuchIsEnded) {
  EXPECT_ERRC(read_secret_command("exec yes"), Errc::invalid_argument);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  EXPECT_EQ(errno, ECHILD);
}

// It has no status of its children.
TEST(Secrets, AProgramThatIgnoresItsChildrenGetsThem) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const Secret secret = read_secret_command("printf abc");
  std::signal(SIGCHLD, before);
  EXPECT_EQ(hex(secret.bytes()), hex(text_secret("abc").bytes()));
}

TEST(Secrets, ComeFromFilesDescriptorsAndCommands) {
  const test::TempDirectory directory;
  const std::string path = directory / "p";
  std::ofstream(path) << "open sesame\r\nnot this\n";
  Secret secret = read_secret_file(path);
  EXPECT_EQ(secret.size(), 22u);
  keep_first_line(secret);
  EXPECT_EQ(hex(secret.bytes()), hex(text_secret("open sesame").bytes()));
  EXPECT_EQ(hex(read_secret_command("printf abc").bytes()), hex(text_secret("abc").bytes()));
  EXPECT_ERRC(read_secret_command("exit 3"), Errc::io);
  EXPECT_ERRC(read_secret_file(path + "2"), Errc::not_found);
  std::ofstream(path) << std::string(kMaxSecretBytes + 1, 'x');
  EXPECT_ERRC(read_secret_file(path), Errc::invalid_argument);
}

}  // namespace
}  // namespace vellum::base
