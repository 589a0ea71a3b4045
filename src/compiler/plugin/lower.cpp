// The code of a mark:
//
//   if (address >> 44 == 2) {                        // in the window of tracked memory
//     if (card of its first byte == 0 || ...) vellum_mark_card(...);
//   }
// and, if the number of bytes is unknown or large, instead of the inner line
//   if (bytes <= 64) as above, for the first and the last byte; else vellum_mark(address, bytes);
// vellum_mark_card() preserves every register, so this code needs two registers and saves none. It must not be bound lazily: the dynamic linker's resolver preserves fewer.
// The card is loaded atomically after a fence for this thread only, which emits no instruction: it makes the compiler keep store and load in this order.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <vellum/cards.h>

#include <vector>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::CallInst;
using llvm::Instruction;
using llvm::SmallVector;
using llvm::Value;

constexpr std::uint64_t kMaxChecks = 4;         // for more cards than this: vellum_mark()
constexpr std::int64_t kMaxDistance = 1 << 16;  // two addresses this near are both in the window

class Lowering {
 public:
  explicit Lowering(llvm::Function& function)
      : module_(*function.getParent()),
        context_(function.getContext()),
        i8_(llvm::Type::getInt8Ty(context_)),
        i64_(llvm::Type::getInt64Ty(context_)),
        pointer_(llvm::PointerType::get(context_, 0)) {}

  // Adjacent marks of a block whose addresses have one base share the first test.
  void lower(const SmallVector<CallInst*, 8>& marks, const SmallVector<std::int64_t, 8>& offsets) {
    CallInst* before = marks.front();
    llvm::IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(before->getDebugLoc());
    Value* address = builder.CreatePtrToInt(Mark::extent(*before).at, i64_);
    Value* window = builder.CreateLShr(address, VELLUM_WINDOW_SHIFT);
    Value* tracked = builder.CreateICmpEQ(window, builder.getInt64(VELLUM_WINDOW_INDEX));
    Instruction* in_window = llvm::SplitBlockAndInsertIfThen(tracked, before, false);
    builder.SetInsertPoint(in_window);
    builder.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                        llvm::SyncScope::SingleThread);
    SmallVector<Value*, 8> addresses;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const Extent extent = Mark::extent(*marks[i]);
      const auto distance = static_cast<std::uint64_t>(offsets[i] - offsets[0]);
      Value* at = builder.CreateAdd(address, builder.getInt64(distance));
      if (llvm::isa<llvm::ConstantInt>(extent.bytes) && checks(extent) <= kMaxChecks) {
        add_addresses(builder, extent, at, addresses);
      } else if (extent.max_bytes != 0 && extent.max_bytes <= kCardBytes) {
        check(builder, {at, last_byte(builder, at, extent.bytes)});
      } else if (llvm::isa<llvm::ConstantInt>(extent.bytes)) {
        mark_all(builder, at, extent.bytes);
      } else {
        mark_range(builder, at, extent.bytes);
      }
      marks[i]->eraseFromParent();
    }
    if (!addresses.empty()) check(builder, addresses);
  }

 private:
  static std::uint64_t constant_bytes(const Extent& extent) {
    return llvm::cast<llvm::ConstantInt>(extent.bytes)->getZExtValue();
  }
  static bool in_one_card(const Extent& extent) {
    return constant_bytes(extent) <= std::min(extent.align, kCardBytes);
  }
  static std::uint64_t checks(const Extent& extent) {
    const std::uint64_t bytes = constant_bytes(extent);
    if (in_one_card(extent)) return 1;
    return (bytes - 1 + kCardBytes - 1) / kCardBytes + (extent.align >= kCardBytes ? 0 : 1);
  }
  static Value* last_byte(llvm::IRBuilder<>& builder, Value* at, Value* bytes) {
    return builder.CreateAdd(at, builder.CreateSub(bytes, builder.getInt64(1)));
  }

  // Every 64th byte, and the last one: each card contains one of them.
  static void add_addresses(llvm::IRBuilder<>& builder, const Extent& extent, Value* at,
                            SmallVector<Value*, 8>& out) {
    const std::uint64_t bytes = constant_bytes(extent);
    for (std::uint64_t offset = 0; offset < bytes; offset += kCardBytes)
      out.push_back(builder.CreateAdd(at, builder.getInt64(offset)));
    const bool begins_with_card = extent.align >= kCardBytes;
    if (!in_one_card(extent) && !begins_with_card && (bytes - 1) % kCardBytes != 0)
      out.push_back(builder.CreateAdd(at, builder.getInt64(bytes - 1)));
  }

  Value* card(llvm::IRBuilder<>& builder, Value* address) {
    Value* shifted = builder.CreateLShr(address, VELLUM_CARD_SHIFT);
    Value* at = builder.CreateAdd(shifted, builder.getInt64(VELLUM_CARD_BIAS));
    auto* load = builder.CreateLoad(i8_, builder.CreateIntToPtr(at, pointer_));
    load->setAtomic(llvm::AtomicOrdering::Monotonic);
    load->setAlignment(llvm::Align(1));
    load->setMetadata(llvm::LLVMContext::MD_nosanitize, llvm::MDNode::get(context_, {}));
    return load;
  }

  // A card is 0 or 1: one `and` shows whether any is clear.
  void check(llvm::IRBuilder<>& builder, const SmallVector<Value*, 8>& addresses) {
    Value* all = card(builder, addresses.front());
    for (Value* address : llvm::drop_begin(addresses))
      all = builder.CreateAnd(all, card(builder, address));
    Value* clear = builder.CreateICmpEQ(all, builder.getInt8(0));
    Instruction* next = &*builder.GetInsertPoint();
    Instruction* call = llvm::SplitBlockAndInsertIfThen(clear, next, false, rarely());
    llvm::IRBuilder<> then(call);
    then.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
    for (Value* address : addresses) {
      if (addresses.size() > 1) test_again(then, address, call);
      call_mark_card(then, address);
      then.SetInsertPoint(call);
    }
    builder.SetInsertPoint(next);
  }

  // Two addresses are usually in the same card, which is set after the first call.
  void test_again(llvm::IRBuilder<>& builder, Value* address, Instruction* before) {
    Value* clear = builder.CreateICmpEQ(card(builder, address), builder.getInt8(0));
    builder.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(clear, before, false));
  }

  void mark_all(llvm::IRBuilder<>& builder, Value* address, Value* bytes) {
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction("vellum_mark", builder.getVoidTy(), pointer_, i64_);
    llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
    builder.CreateCall(callee, {builder.CreateIntToPtr(address, pointer_), bytes})
        ->setDoesNotThrow();
  }

  // vellum_mark() ignores 0 bytes, so `bytes` may be 0 here: 0 - 1 is not below 64.
  void mark_range(llvm::IRBuilder<>& builder, Value* address, Value* bytes) {
    Value* last = builder.CreateSub(bytes, builder.getInt64(1));
    Value* few = builder.CreateICmpULT(last, builder.getInt64(kCardBytes));
    Instruction* next = &*builder.GetInsertPoint();
    Instruction* then = nullptr;
    Instruction* otherwise = nullptr;
    llvm::SplitBlockAndInsertIfThenElse(few, next, &then, &otherwise);
    llvm::IRBuilder<> branch(then);
    branch.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
    check(branch, {address, branch.CreateAdd(address, last)});
    branch.SetInsertPoint(otherwise);
    mark_all(branch, address, bytes);
    builder.SetInsertPoint(next);
  }

  void call_mark_card(llvm::IRBuilder<>& builder, Value* address) {
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction("vellum_mark_card", builder.getVoidTy(), pointer_);
    if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
      function->setCallingConv(llvm::CallingConv::PreserveAll);
      for (const auto attribute :
           {llvm::Attribute::NoUnwind, llvm::Attribute::NonLazyBind, llvm::Attribute::Cold})
        function->addFnAttr(attribute);
    }
    auto* call = builder.CreateCall(callee, {builder.CreateIntToPtr(address, pointer_)});
    call->setCallingConv(llvm::CallingConv::PreserveAll);
    for (const auto attribute : {llvm::Attribute::NoUnwind, llvm::Attribute::Cold})
      call->addFnAttr(attribute);
  }

  llvm::MDNode* rarely() { return llvm::MDBuilder(context_).createBranchWeights(1, 2000); }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::Type* i8_;
  llvm::Type* i64_;
  llvm::Type* pointer_;
};

struct Group {
  Value* base;
  bool open;  // for further marks: numbers of bytes are constant
  SmallVector<CallInst*, 8> marks;
  SmallVector<std::int64_t, 8> offsets;  // of each, from the base
};

class Grouping {
 public:
  explicit Grouping(const llvm::DataLayout& layout) : layout_(layout) {}

  // Between the marks of a group there is only code that computes addresses.
  void add(llvm::BasicBlock& block) {
    bool adjacent = false;
    for (Instruction& instruction : block) {
      if (Mark::is(instruction)) {
        add(llvm::cast<CallInst>(instruction), adjacent);
        adjacent = true;
      } else {
        adjacent &= !instruction.mayReadOrWriteMemory();
      }
    }
  }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  void add(CallInst& mark, bool adjacent) {
    llvm::APInt offset(64, 0);
    Value* base = mark.getArgOperand(0)->stripAndAccumulateConstantOffsets(layout_, offset, true);
    const std::int64_t at = offset.getSExtValue();
    const bool constant = llvm::isa<llvm::ConstantInt>(mark.getArgOperand(1));
    if (!adjacent || !constant || !groups_.back().open || groups_.back().base != base ||
        std::abs(at - groups_.back().offsets.front()) > kMaxDistance)
      groups_.push_back({base, constant, {}, {}});
    groups_.back().marks.push_back(&mark);
    groups_.back().offsets.push_back(at);
  }

  const llvm::DataLayout& layout_;
  std::vector<Group> groups_;
};

}  // namespace

void lower_marks(llvm::Function& function) {
  Grouping grouping(function.getParent()->getDataLayout());
  for (llvm::BasicBlock& block : function) grouping.add(block);
  Lowering lowering(function);
  for (const Group& group : grouping.groups()) lowering.lower(group.marks, group.offsets);
}

}  // namespace vellum_pass
