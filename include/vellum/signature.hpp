// vellum/signature.hpp: signed versions.
//
// A snapshot may carry a signature: Ed25519, over the root of a hash tree of its pages, its name,
// branch, times and message, and the signed version before it. Whoever has the public key can then
// tell whether the content is what was signed, wherever the store is. Commits in a branch's journal
// are not signed: take a snapshot. docs/guides/keys.md, Signatures.
#ifndef VELLUM_SIGNATURE_HPP
#define VELLUM_SIGNATURE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vellum {

using PublicKey = std::array<std::byte, 32>;  // of Ed25519

// The private key with which this process signs each snapshot that it makes: a file in PEM (PKCS #8:
// `openssl genpkey -algorithm ed25519`) or OpenSSH's format, without a passphrase. Empty: none, and
// snapshots have no signature. The file is read for each snapshot and not kept; the key of a pipe is
// kept. Until the first call it is that of VELLUM_SIGN_KEY_FILE, except in a program with more rights
// than its caller.
void set_sign_key_file(const std::string& path);
std::string sign_key_file();

// From a file in PEM or a line of OpenSSH. Errc::invalid_argument, not_found, io.
PublicKey read_public_key(const std::string& file);
// That of a private key: what set_sign_key_file() takes.
PublicKey public_key_of(const std::string& private_key_file);

struct Signature {
  PublicKey key{};
  std::array<std::byte, 64> bytes{};
  std::array<std::byte, 32> root{};         // of the tree over the pages
  std::uint64_t number = 1;                 // of the signed version on its line
  std::string parent;                       // the signed version before it; empty: none
  std::array<std::byte, 32> parent_hash{};  // of the bytes that the parent's signature signs
};

// The result of checking one snapshot.
struct SignatureCheck {
  std::string name;
  bool is_signed = false;
  Signature signature;
  std::string problem;  // empty: signed by one of the keys, and the content is what was signed
  // The signed version before it that is not there any more, or cannot be read, or whose name another
  // version has; empty: the chain goes on to a version that was checked, or begins here.
  std::string chain_ends_before;
  // A sentence: the numbers do not ascend in the order of the branch's snapshots, which no signature
  // covers. A removed snapshot, or a branch that begins again under its name, has that effect, too.
  std::string note;
};

// The head of a branch, which no signature covers.
struct HeadCheck {
  std::string branch;
  // The branch's newest snapshot, if it was checked without a problem and the head has the same pages;
  // empty: what is in the head is not signed.
  std::string same_as;
};

struct SignatureReport {
  std::vector<SignatureCheck>
      snapshots;                 // empty: nothing was checked, and nothing is to be trusted
  std::vector<HeadCheck> heads;  // unless snapshots were named
};

}  // namespace vellum

#endif  // VELLUM_SIGNATURE_HPP
