// All regions of this program free private copies at once.
#include "support/eager_reclaim.hpp"

namespace vellum::test {
namespace {

[[maybe_unused]] const EagerReclaim eager;

}  // namespace
}  // namespace vellum::test
