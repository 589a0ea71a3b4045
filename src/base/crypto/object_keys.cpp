#include "base/crypto/object_keys.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cassert>
#include <climits>

#include "base/crypto/evp.hpp"
#include "base/crypto/hkdf.hpp"
#include "base/fail.hpp"

namespace vellum::base {
namespace {

constexpr std::size_t kSivKeyBytes = 2 * kKeyBytes;  // one key authenticates, the other encrypts

const EVP_CIPHER* siv_cipher() {
  static const EVP_CIPHER* const cipher = fetch_cipher("AES-256-SIV");
  return cipher;
}

UniqueCipherContext new_object_context() {
  UniqueCipherContext out(EVP_CIPHER_CTX_new());
  if (out == nullptr) fail(Errc::out_of_memory, "no memory for a cipher");
  return out;
}

Secret derived(const Secret& data_key, std::string_view info, std::size_t bytes) {
  Secret out(bytes);
  hkdf_sha256(data_key.bytes(), {}, info, out.bytes());
  return out;
}

// The control call takes the authenticator's bytes as they are, in both directions.
bool exchange_authenticator(EVP_CIPHER_CTX* context, int what, std::byte* authenticator) noexcept {
  return EVP_CIPHER_CTX_ctrl(context, what, int{kAuthenticatorBytes}, authenticator) == 1;
}

}  // namespace

ObjectKeys::ObjectKeys(const Secret& data_key)
    : data_key_(data_key.bytes()),
      object_key_(derived(data_key, "vellum object", kKeyBytes)),
      name_key_(derived(data_key, "vellum object name", kSivKeyBytes)) {
  assert(data_key.size() == kKeyBytes);
  siv_cipher();
}

SealedName ObjectKeys::seal_name(std::span<const std::byte> clear,
                                 const ObjectNameHash& name) const {
  SealedName out{};
  const UniqueCipherContext context = new_object_context();
  const auto text = std::span(out).last<kObjectNameBytes>();
  if (EVP_CipherInit_ex(context.get(), siv_cipher(), nullptr, raw(name_key_.bytes()), nullptr, 1) !=
          1 ||
      !update_cipher(context.get(), clear, name, text) || !finish_cipher(context.get()) ||
      !exchange_authenticator(context.get(), EVP_CTRL_AEAD_GET_TAG, out.data())) {
    fail(Errc::out_of_memory, "AES-256-SIV failed");
  }
  return out;
}

std::optional<ObjectNameHash> ObjectKeys::open_name(std::span<const std::byte> clear,
                                                    const SealedName& sealed) const {
  ObjectNameHash out{};
  SealedName copy = sealed;
  const UniqueCipherContext context = new_object_context();
  const auto text = std::span(std::as_const(copy)).last<kObjectNameBytes>();
  const bool good = EVP_CipherInit_ex(context.get(), siv_cipher(), nullptr, raw(name_key_.bytes()),
                                      nullptr, 0) == 1 &&
                    exchange_authenticator(context.get(), EVP_CTRL_AEAD_SET_TAG, copy.data()) &&
                    update_cipher(context.get(), clear, text, out) && finish_cipher(context.get());
  return good ? std::optional(out) : std::nullopt;
}

struct ObjectCipher::State {
  UniqueCipherContext context = new_object_context();

  bool begin(std::uint64_t chunk) noexcept {
    unsigned char nonce[kNonceBytes] = {};
    for (std::size_t i = 0; i < sizeof chunk; ++i) {
      nonce[i] = static_cast<unsigned char>(chunk >> (CHAR_BIT * i));
    }
    return EVP_CipherInit_ex(context.get(), nullptr, nullptr, nullptr, nonce, -1) == 1;
  }
};

ObjectCipher::ObjectCipher(const ObjectKeys& keys, const ObjectSalt& salt, Direction direction)
    : state_(std::make_unique<State>()) {
  Secret key(kKeyBytes);
  hkdf_sha256(keys.object_key_.bytes(), salt, "vellum object key", key.bytes());
  if (EVP_CipherInit_ex(state_->context.get(), gcm_cipher(), nullptr, raw(key.bytes()), nullptr,
                        static_cast<int>(direction)) != 1) {
    fail(Errc::out_of_memory, "no memory for a cipher");
  }
}

ObjectCipher::~ObjectCipher() = default;

void ObjectCipher::seal(std::uint64_t chunk, std::span<const std::byte> clear,
                        std::span<const std::byte> text, std::span<std::byte> out,
                        std::span<std::byte, kAuthenticatorBytes> authenticator) {
  EVP_CIPHER_CTX* const context = state_->context.get();
  if (!state_->begin(chunk) || !update_cipher(context, clear, text, out) ||
      !finish_cipher(context) ||
      !exchange_authenticator(context, EVP_CTRL_AEAD_GET_TAG, authenticator.data())) {
    fail(Errc::out_of_memory, "AES-256-GCM failed");
  }
}

bool ObjectCipher::open(std::uint64_t chunk, std::span<const std::byte> clear,
                        std::span<const std::byte> text, std::span<std::byte> out,
                        std::span<const std::byte, kAuthenticatorBytes> authenticator) {
  EVP_CIPHER_CTX* const context = state_->context.get();
  std::array<std::byte, kAuthenticatorBytes> copy;
  std::ranges::copy(authenticator, copy.begin());
  const bool good = state_->begin(chunk) && update_cipher(context, clear, text, out) &&
                    exchange_authenticator(context, EVP_CTRL_AEAD_SET_TAG, copy.data()) &&
                    finish_cipher(context);
  if (!good && !out.empty()) OPENSSL_cleanse(out.data(), out.size());
  return good;
}

}  // namespace vellum::base
