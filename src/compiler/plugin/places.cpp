// The kind of memory at an address: the stack, the program's own variables, or anything, which
// includes tracked memory.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <vellum/cards.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::Instruction;
using llvm::SmallVector;
using llvm::Value;

// A constant address is tracked if it is inside the window.
bool number_outside_window(const Value* object) {
  const auto* expression = llvm::dyn_cast<llvm::ConstantExpr>(object);
  if (expression == nullptr || expression->getOpcode() != Instruction::IntToPtr) return false;
  const auto* number = llvm::dyn_cast<llvm::ConstantInt>(expression->getOperand(0));
  return number != nullptr &&
         (number->getZExtValue() >> VELLUM_WINDOW_SHIFT) != VELLUM_WINDOW_INDEX;
}

MemoryKind place_of_object(const Value* object) {
  if (llvm::isa<llvm::AllocaInst>(object)) return MemoryKind::stack;
  const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
  if (argument != nullptr && argument->hasByValAttr()) return MemoryKind::stack;
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(object);
  const bool thread_local_object =
      intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
  if (thread_local_object || llvm::isa<llvm::GlobalVariable>(object) ||
      llvm::isa<llvm::Function>(object) || llvm::isa<llvm::ConstantPointerNull>(object) ||
      llvm::isa<llvm::UndefValue>(object) || number_outside_window(object))
    return MemoryKind::other;
  return MemoryKind::may_be_tracked;
}

}  // namespace

// A result returned by value (sret) is not always on the stack: `new (p) T(f())` makes f write to
// p.
MemoryKind memory_kind_of(const Value* address) {
  if (address->getType()->getPointerAddressSpace() != 0) return MemoryKind::other;  // fs:, gs:
  SmallVector<const Value*, 4> objects;
  llvm::getUnderlyingObjects(address, objects, nullptr, 0);
  MemoryKind all = MemoryKind::stack;
  for (const Value* object : objects) {
    const MemoryKind place = place_of_object(object);
    if (place == MemoryKind::may_be_tracked) return place;
    if (place == MemoryKind::other) all = place;
  }
  return all;
}

bool may_be_tracked(const Value* address) {
  return memory_kind_of(address) == MemoryKind::may_be_tracked;
}

}  // namespace vellum_pass
