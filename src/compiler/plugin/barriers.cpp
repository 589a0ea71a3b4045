// The instructions past which no mark may move.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

// Intrinsics become instructions, or functions that never commit. The exceptions are here.
bool runs_code(const llvm::IntrinsicInst& call) {
  const llvm::StringRef name = call.getCalledFunction()->getName();
  return name.starts_with("llvm.eh.sjlj.") || name.starts_with("llvm.experimental.deoptimize") ||
         name.starts_with("llvm.experimental.gc.") ||
         name.starts_with("llvm.experimental.patchpoint");
}

// A commit reads tracked memory and writes its own memory. A function that only reads, or only
// accesses memory through its arguments, therefore does not commit.
bool call_may_commit(const llvm::CallBase& call) {
  if (call.isInlineAsm())
    return llvm::cast<llvm::InlineAsm>(call.getCalledOperand())->hasSideEffects();
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call))
    return runs_code(*intrinsic);
  if (Mark::is(call)) return false;
  if (!call.doesNotThrow()) return true;  // an exception leaves the function
  return !call.onlyReadsMemory() && !call.onlyAccessesArgMemory();
}

}  // namespace

// Older programs publish by a volatile store, so this counts as a release.
bool is_barrier(const llvm::Instruction& instruction) {
  using llvm::isReleaseOrStronger;
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
    return call_may_commit(*call);
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return store->isVolatile() || isReleaseOrStronger(store->getOrdering());
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return load->getOrdering() == llvm::AtomicOrdering::SequentiallyConsistent;
  if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
    return update->isVolatile() || isReleaseOrStronger(update->getOrdering());
  if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    return exchange->isVolatile() || isReleaseOrStronger(exchange->getSuccessOrdering());
  if (const auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction))
    return isReleaseOrStronger(fence->getOrdering());
  return false;
}

bool synchronizes(const llvm::Instruction& instruction) {
  return is_barrier(instruction) || instruction.isAtomic() || instruction.isVolatile();
}

}  // namespace vellum_pass
