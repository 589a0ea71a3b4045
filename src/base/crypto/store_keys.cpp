// base/crypto/store_keys.cpp: see store_keys.hpp.
#include "base/crypto/store_keys.hpp"

#include <openssl/crypto.h>
#include <sched.h>

#include <cassert>
#include <cstring>

#include "base/bytes/sha256.hpp"
#include "base/crypto/evp.hpp"
#include "base/crypto/hkdf.hpp"
#include "base/fail.hpp"
#include "base/threads/handler_lock.hpp"

namespace vellum::base {
namespace {

constexpr const char* kKindInfo[] = {"vellum pack", "vellum journal", "vellum file"};
constexpr std::byte kZeroKey[kKeyBytes] = {};

const EVP_CIPHER* ecb_cipher() {
  static const EVP_CIPHER* const cipher = fetch_cipher("AES-256-ECB");
  return cipher;
}

using Context = UniqueCipherContext;

Context new_context(const EVP_CIPHER* cipher) {
  Context out(EVP_CIPHER_CTX_new());
  if (out == nullptr ||
      EVP_CipherInit_ex(out.get(), cipher, nullptr, raw(std::span(kZeroKey)), nullptr, 1) != 1) {
    fail(Errc::out_of_memory, "no memory for a cipher");
  }
  EVP_CIPHER_CTX_set_padding(out.get(), 0);
  return out;
}

// Replaces the key schedule by that of the zero key.
void forget_key(EVP_CIPHER_CTX* context) noexcept {
  EVP_CipherInit_ex(context, nullptr, nullptr, raw(std::span(kZeroKey)), nullptr, -1);
}

// REQUIRES: the nonce is in place, at the start of `seal`.
bool encrypt(EVP_CIPHER_CTX* context, std::span<const std::byte> key,
             std::span<const std::byte> clear, std::span<std::byte> text,
             std::span<std::byte> seal) noexcept {
  const bool good = EVP_CipherInit_ex(context, nullptr, nullptr, raw(key), raw(seal), 1) == 1 &&
                    update_cipher(context, clear, text, text) && finish_cipher(context) &&
                    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, int{kAuthenticatorBytes},
                                        seal.data() + kNonceBytes) == 1;
  forget_key(context);
  return good;
}

bool decrypt(EVP_CIPHER_CTX* context, std::span<const std::byte> key,
             std::span<const std::byte> clear, std::span<std::byte> text,
             std::span<const std::byte> seal) noexcept {
  unsigned char authenticator[kAuthenticatorBytes];
  std::memcpy(authenticator, seal.data() + kNonceBytes, sizeof authenticator);
  const bool good = EVP_CipherInit_ex(context, nullptr, nullptr, raw(key), raw(seal), 0) == 1 &&
                    update_cipher(context, clear, text, text) &&
                    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, int{kAuthenticatorBytes},
                                        authenticator) == 1 &&
                    finish_cipher(context);
  forget_key(context);
  if (!good && !text.empty()) OPENSSL_cleanse(text.data(), text.size());
  return good;
}

[[noreturn]] void fail_sealing() { fail(Errc::out_of_memory, "AES-256-GCM failed"); }

}  // namespace

struct StoreKeys::CipherContext {
  HandlerLock lock;
  Context ecb, gcm;
  std::span<std::byte> message_key;  // secret memory

  // The message key: AES-256 of two blocks that no other message key has.
  bool derive(std::span<const std::byte> kind_key, const MessageKey& key) noexcept {
    constexpr std::uint64_t kCounterAt = 56;
    std::uint64_t blocks[4] = {key.a, (key.b & ((1ULL << kCounterAt) - 1)) | 1ULL << kCounterAt,
                               key.a, (key.b & ((1ULL << kCounterAt) - 1)) | 2ULL << kCounterAt};
    static_assert(sizeof blocks == kKeyBytes && kKeyBytes == 2 * kCipherBlockBytes);
    int done = 0;
    const bool good =
        EVP_CipherInit_ex(ecb.get(), nullptr, nullptr, raw(kind_key), nullptr, 1) == 1 &&
        EVP_CipherUpdate(ecb.get(), raw(message_key), &done,
                         reinterpret_cast<const unsigned char*>(blocks), sizeof blocks) == 1 &&
        done == int{sizeof blocks};
    forget_key(ecb.get());
    return good;
  }
  void release() noexcept {
    OPENSSL_cleanse(message_key.data(), message_key.size());
    lock.unlock();
  }
};

StoreKeys::StoreKeys(const Secret& data_key)
    : data_key_(data_key.bytes()),
      kind_keys_(kUses * kKeyBytes),
      nonce_key_(kKeyBytes),
      message_keys_(kContexts * kKeyBytes),
      contexts_(std::make_unique<std::array<CipherContext, kContexts>>()) {
  assert(data_key.size() == kKeyBytes);
  for (std::size_t i = 0; i < kUses; ++i) {
    hkdf_sha256(data_key_.bytes(), {}, kKindInfo[i],
                kind_keys_.bytes().subspan(i * kKeyBytes, kKeyBytes));
  }
  hkdf_sha256(data_key_.bytes(), {}, "vellum nonce", nonce_key_.bytes());
  for (std::size_t i = 0; i < kContexts; ++i) {
    CipherContext& context = (*contexts_)[i];
    context.ecb = new_context(ecb_cipher());
    context.gcm = new_context(gcm_cipher());
    context.message_key = message_keys_.bytes().subspan(i * kKeyBytes, kKeyBytes);
  }
}

StoreKeys::~StoreKeys() = default;

// One that this processor used last, if it is free.
StoreKeys::CipherContext& StoreKeys::lock_context() const noexcept {
  const auto start = static_cast<std::size_t>(sched_getcpu());
  for (std::size_t i = 0; i < kContexts; ++i) {
    CipherContext& context = (*contexts_)[(start + i) % kContexts];
    if (context.lock.try_lock()) return context;
  }
  CipherContext& context = (*contexts_)[start % kContexts];
  context.lock.lock();
  return context;
}

std::span<const std::byte> StoreKeys::kind_key(KeyUse use) const noexcept {
  return kind_keys_.bytes().subspan(static_cast<std::size_t>(use) * kKeyBytes, kKeyBytes);
}

void StoreKeys::seal(const MessageKey& key, std::span<const std::byte> clear,
                     std::span<std::byte> text, std::span<std::byte> seal) const {
  fill_random(seal.first(kNonceBytes));
  encrypt_with_nonce(key, clear, text, seal);
}

// The nonce depends on everything that is authenticated: two messages with one nonce and one key
// would tell their contents, and the key that authenticates.
void StoreKeys::seal_alike(const MessageKey& key, std::span<const std::byte> clear,
                           std::span<std::byte> text, std::span<std::byte> seal) const {
  std::array<Sha256, 2> hashes{sha256(clear), sha256(text)};
  const auto info = std::as_bytes(std::span(hashes));
  hkdf_sha256(nonce_key_.bytes(), {}, {reinterpret_cast<const char*>(info.data()), info.size()},
              seal.first(kNonceBytes));
  encrypt_with_nonce(key, clear, text, seal);
}

void StoreKeys::encrypt_with_nonce(const MessageKey& key, std::span<const std::byte> clear,
                                   std::span<std::byte> text, std::span<std::byte> seal) const {
  assert(seal.size() == kSealBytes);
  CipherContext& context = lock_context();
  const bool good = context.derive(kind_key(key.use), key) &&
                    encrypt(context.gcm.get(), context.message_key, clear, text, seal);
  context.release();
  if (!good) fail_sealing();
}

bool StoreKeys::open(const MessageKey& key, std::span<const std::byte> clear,
                     std::span<std::byte> text, std::span<const std::byte> seal) const noexcept {
  assert(seal.size() == kSealBytes);
  CipherContext& context = lock_context();
  const bool good = context.derive(kind_key(key.use), key) &&
                    decrypt(context.gcm.get(), context.message_key, clear, text, seal);
  context.release();
  return good;
}

void seal_with(std::span<const std::byte> key, std::span<const std::byte> clear,
               std::span<std::byte> text, std::span<std::byte> seal) {
  assert(key.size() == kKeyBytes && seal.size() == kSealBytes);
  fill_random(seal.first(kNonceBytes));
  const Context context = new_context(gcm_cipher());
  if (!encrypt(context.get(), key, clear, text, seal)) fail_sealing();
}

bool open_with(std::span<const std::byte> key, std::span<const std::byte> clear,
               std::span<std::byte> text, std::span<const std::byte> seal) {
  assert(key.size() == kKeyBytes && seal.size() == kSealBytes);
  const Context context = new_context(gcm_cipher());
  return decrypt(context.get(), key, clear, text, seal);
}

}  // namespace vellum::base
