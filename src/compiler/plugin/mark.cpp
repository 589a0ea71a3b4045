// The placeholder of a mark: its four operands are the members of an Extent.
#include <llvm/IR/Module.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

constexpr const char* kPlaceholder = "vellum.stored";

}  // namespace

llvm::CallInst* Mark::insert(llvm::IRBuilderBase& at, const Extent& extent) {
  llvm::Module& module = *at.GetInsertBlock()->getModule();
  llvm::Type* i64 = at.getInt64Ty();
  llvm::FunctionCallee callee = module.getOrInsertFunction(
      kPlaceholder, at.getVoidTy(), llvm::PointerType::get(module.getContext(), 0), i64, i64, i64);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  return at.CreateCall(callee, {extent.at, at.CreateZExtOrTrunc(extent.bytes, i64),
                                at.getInt64(extent.align), at.getInt64(extent.max_bytes)});
}

bool Mark::is(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee != nullptr && callee->getName() == kPlaceholder;
}

Extent Mark::extent(const llvm::CallInst& placeholder) {
  const auto number = [&](unsigned operand) {
    return llvm::cast<llvm::ConstantInt>(placeholder.getArgOperand(operand))->getZExtValue();
  };
  return {placeholder.getArgOperand(0), placeholder.getArgOperand(1), number(2), number(3)};
}

}  // namespace vellum_pass
