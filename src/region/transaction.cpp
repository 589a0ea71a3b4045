// Transactions: stores that are committed together or rolled back.
#include <cassert>
#include <cstdio>
#include <exception>
#include <utility>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "region/call_guards.hpp"
#include "region/region_impl.hpp"

namespace vellum {

using region::WriterCall;

CommitReport Region::Impl::commit_transaction(const std::string& message) {
  assert(transaction == TransactionState::open);
  const CommitReport report = commit({}, message);
  transaction = TransactionState::none;
  return report;
}

void Region::Impl::roll_transaction_back() {
  rollback();
  transaction = TransactionState::none;
}

void Region::Impl::abandon_transaction() noexcept {
  assert(transaction == TransactionState::open);
  try {
    roll_transaction_back();
  } catch (const std::exception& e) {
    transaction = TransactionState::stuck;
    std::fprintf(stderr, "vellum: a transaction could not be rolled back: %s\n", e.what());
  }
}

void Region::Impl::require_no_transaction(const char* call) const {
  switch (transaction) {
    case TransactionState::none:
      return;
    case TransactionState::open:
      fail(Errc::busy, "region '{}': {} while a transaction is open: commit that, or roll it back",
           name, call);
    case TransactionState::stuck:
      fail(Errc::poisoned,
           "region '{}': a transaction could not be rolled back, so nothing may be committed: call "
           "rollback(), or open the branch again",
           name);
  }
}

Transaction Region::begin() {
  const WriterCall call(impl_);
  impl_->require_no_transaction("begin()");
  assert(impl_->transaction == Impl::TransactionState::none);
  impl_->transaction = Impl::TransactionState::open;
  return Transaction(impl_);
}

bool Transaction::is_open() const noexcept { return region_ != nullptr && !region_->closed; }

std::shared_ptr<Region::Impl> Transaction::opened() const {
  if (region_ == nullptr)
    fail(Errc::invalid_argument, "this Transaction has ended, or was never begun");
  return region_;
}

CommitReport Transaction::commit(const std::string& message) {
  const auto impl = opened();
  const WriterCall call(impl);
  const CommitReport report = impl->commit_transaction(message);
  region_.reset();
  return report;
}

void Transaction::rollback() {
  const auto impl = opened();
  const WriterCall call(impl);
  impl->roll_transaction_back();
  region_.reset();
}

void Transaction::end() noexcept {
  if (region_ == nullptr) return;
  const auto impl = std::exchange(region_, nullptr);
  try {
    const WriterCall call(impl);
    impl->abandon_transaction();
  } catch (const std::exception&) {  // the region is closed, or the parent's
  }
}

}  // namespace vellum
