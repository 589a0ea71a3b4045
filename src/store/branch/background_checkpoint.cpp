#include "store/branch/background_checkpoint.hpp"

namespace vellum::store {
namespace {

BackgroundCheckpoint::Policy& policy_now() noexcept {
  static BackgroundCheckpoint::Policy policy;
  return policy;
}

}  // namespace

void BackgroundCheckpoint::set_policy(const Policy& policy) { policy_now() = policy; }
const BackgroundCheckpoint::Policy& BackgroundCheckpoint::policy() noexcept { return policy_now(); }

}  // namespace vellum::store
