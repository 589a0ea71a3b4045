// Keys for tests, and a process that signs with one of them.
#pragma once

#include <fstream>

#include <vellum/signature.hpp>

#include "store/support.hpp"

namespace vellum::store::test {

// Made by `openssl genpkey -algorithm ed25519`.
inline constexpr const char* kSignKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ9wW8wYGFVVtx6Ta9zqPhuVmScgjF42egHLIKVjO/3X\n"
    "-----END PRIVATE KEY-----\n";
inline constexpr const char* kOtherSignKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ7ag7ucuuWK9eLORtDNukSSZjB3C0Njw/UrnyuQfTOA\n"
    "-----END PRIVATE KEY-----\n";

// This process signs as long as this object lives, if `signs`.
class SigningProcess {
 public:
  explicit SigningProcess(bool signs = true) {
    std::ofstream(file()) << kSignKey;
    set_sign_key_file(signs ? file() : "");
  }
  ~SigningProcess() { set_sign_key_file(""); }
  SigningProcess(const SigningProcess&) = delete;
  SigningProcess& operator=(const SigningProcess&) = delete;

  std::string file() const { return directory_.path("key.pem"); }
  std::vector<PublicKey> keys() const { return {public_key_of(file())}; }

 private:
  TempDirectory directory_;
};

}  // namespace vellum::store::test
