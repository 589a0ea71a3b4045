// The key slots in the C++ interface of a store (vellum/store.hpp), over
// store/catalog/key_file.hpp.
#include <vellum/store.hpp>

#include "region/api/store_impl.hpp"
#include "store/catalog/key_file.hpp"

namespace vellum {

std::string Store::key_fingerprint() const { return store::key_fingerprint(*impl_->core); }

std::vector<KeySlot> Store::keys() const { return store::key_slots(*impl_->core); }

KeySlot Store::add_key(const KeySource& secret, const std::string& label) {
  return store::add_key_slot(*impl_->core, secret, label);
}

void Store::remove_key(std::uint32_t number) { store::remove_key_slot(*impl_->core, number); }

KeySlot Store::replace_key(std::uint32_t number, const KeySource& secret) {
  return store::replace_key_slot(*impl_->core, number, secret);
}

}  // namespace vellum
