// format/wire/seal.hpp: what protects the content of a store: the seed of its checksums and, in an
// encrypted store, its keys.
//
// The same content has the same bytes with and without keys, except that an encrypted store seals
// the payload, and appends kSealBytes to it. A structure that is not sealed is refused where there
// are keys, and a sealed one where there are none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/crypto/store_keys.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

using base::kSealBytes;
using base::StoreKeys;

// What shows that a message was sealed with its key.
using Authenticator = std::array<std::byte, base::kAuthenticatorBytes>;

constexpr std::size_t seal_bytes(bool sealed) noexcept { return sealed ? kSealBytes : 0; }

// Of the records in packs. A plain seed: of a plain store.
struct RecordSeal {
  RecordSeal(std::uint64_t s, const StoreKeys* k = nullptr) noexcept : seed(s), keys(k) {}
  std::uint64_t seed;
  const StoreKeys* keys;  // null: a plain store
  bool is_alike = false;  // the same record has the same bytes (StoreKeys::seal_alike())
};

// Of the frames of a journal. `seed` is checksum_seed(store) ^ branch id. Each frame of an epoch is
// sealed together with the authenticator of the frame before it, so no frame of another history can
// follow. A base frame begins the chain; a marker is sealed with that of its frame.
struct FrameSeal {
  FrameSeal(std::uint64_t s, const StoreKeys* k = nullptr, std::uint64_t branch = 0) noexcept
      : seed(s), keys(k), branch_id(branch) {}
  std::uint64_t seed;
  const StoreKeys* keys;  // null: a plain store
  std::uint64_t branch_id;
  Authenticator before{};  // of a commit: that of the frame before; of a marker: that of its frame
};

// Of the other files. A plain id: of a plain store.
struct FileSeal {
  FileSeal(const Uuid& id, const StoreKeys* k = nullptr) noexcept : store_id(id), keys(k) {}
  Uuid store_id;
  const StoreKeys* keys;  // null: a plain store
};

// For both, and for code that may outlive the open store. A plain id: of a plain store.
struct StoreSeal {
  StoreSeal(const Uuid& id, std::shared_ptr<const StoreKeys> k = nullptr) noexcept
      : store_id(id), keys(std::move(k)) {}
  Uuid store_id;
  std::shared_ptr<const StoreKeys> keys;  // null: a plain store
  FileSeal of_files() const noexcept { return {store_id, keys.get()}; }
  RecordSeal of_records() const noexcept;
};

}  // namespace vellum::format
