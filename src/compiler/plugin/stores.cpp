// The instructions that store, and their addresses.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <vellum/cards.h>

#include <cstdlib>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::CallBase;
using llvm::CallInst;
using llvm::Instruction;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::Value;

// x86 permits unaligned stores that the language forbids, and programs rely on that (LMDB does).
// Only vector instructions require alignment, to 16 bytes at least. A store of 8 bytes may
// therefore touch two cards, unless VELLUM_CARDS_ALIGNED=1 declares that the program is strict.
std::uint64_t trusted(std::uint64_t align) {
  static const char* const value = std::getenv("VELLUM_CARDS_ALIGNED");
  return value != nullptr && llvm::StringRef(value) == "1" ? align : 1;
}

// Collects the stores of one instruction. The code to compute them is inserted after the
// instruction.
class Finder {
 public:
  Finder(Instruction& instruction, SmallVectorImpl<Extent>& out)
      : instruction_(instruction),
        layout_(instruction.getModule()->getDataLayout()),
        behind_(instruction.getContext()),
        out_(out) {}

  bool is_store() {
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction_)) {
      llvm::Type* type = store->getValueOperand()->getType();
      const std::uint64_t align = store->getAlign().value();
      const bool demanded = type->isVectorTy() && align >= 16;
      return fixed(store->getPointerOperand(), type,
                   demanded ? std::max<std::uint64_t>(16, trusted(align)) : trusted(align));
    }
    if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction_)) {
      return fixed(update->getPointerOperand(), update->getValOperand()->getType(),
                   trusted(update->getAlign().value()));
    }
    if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction_)) {
      return compare_exchange(*exchange);
    }
    auto* call = llvm::dyn_cast<CallInst>(&instruction_);
    if (call == nullptr) return callbr_with_output();
    if (call->isInlineAsm()) return inline_asm(*call);
    if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(call)) return mem_intrinsic(*memory);
    if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call))
      return intrinsic_store(*intrinsic);
    return atomic_library_call(*call);
  }
  bool is_unknown() const { return unknown_; }

 private:
  llvm::IRBuilder<>& behind() {
    if (behind_.GetInsertBlock() == nullptr) {
      behind_.SetInsertPoint(instruction_.getNextNode());
      behind_.SetCurrentDebugLocation(instruction_.getDebugLoc());
    }
    return behind_;
  }
  bool fixed_bytes(Value* at, std::uint64_t bytes, std::uint64_t align) {
    out_.push_back({at, behind_.getInt64(bytes), align, bytes});
    return true;
  }
  bool fixed(Value* at, llvm::Type* type, std::uint64_t align) {
    const llvm::TypeSize bytes = layout_.getTypeStoreSize(type);
    if (bytes.isScalable()) return unknown();
    return bytes.getFixedValue() == 0 ? false : fixed_bytes(at, bytes.getFixedValue(), align);
  }
  bool unknown() {
    unknown_ = true;
    return true;
  }

  // A failed exchange stores nothing.
  bool compare_exchange(llvm::AtomicCmpXchgInst& exchange) {
    Value* at = exchange.getPointerOperand();
    if (memory_kind_of(at) == MemoryKind::may_be_tracked) {
      Value* stored = behind().CreateExtractValue(&exchange, 1);
      at = at_if(behind_, stored, at);
    }
    return fixed(at, exchange.getNewValOperand()->getType(), trusted(exchange.getAlign().value()));
  }

  bool mem_intrinsic(llvm::AnyMemIntrinsic& memory) {
    Value* length = memory.getLength();
    std::uint64_t constant = 0;
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(length)) {
      constant = number->getZExtValue();
      if (constant == 0) return false;
    }
    const std::uint64_t align = trusted(memory.getDestAlign().valueOrOne().value());
    out_.push_back({memory.getRawDest(), length, align, constant});
    return true;
  }

  // Outputs in memory ("=m") are pointers of known type; other stores of a template are unknown.
  bool inline_asm(CallBase& call) {
    const auto* code = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
    bool clobbers_memory = false;
    bool found = false;
    unsigned operand = 0;
    for (const auto& constraint : code->ParseConstraints()) {
      if (constraint.Type == llvm::InlineAsm::isClobber) {
        for (const std::string& name : constraint.Codes) clobbers_memory |= name == "{memory}";
        continue;
      }
      if (constraint.Type == llvm::InlineAsm::isLabel) continue;
      const bool output = constraint.Type == llvm::InlineAsm::isOutput;
      if (output && !constraint.isIndirect) continue;  // returned
      if (output) {
        llvm::Type* type = call.getParamElementType(operand);
        found |= type == nullptr ? unknown() : fixed(call.getArgOperand(operand), type, 1);
      }
      ++operand;
    }
    if (clobbers_memory && !code->getAsmString().empty() && !call.doesNotAccessMemory())
      found |= unknown();
    return found;
  }

  bool callbr_with_output() {
    auto* branch = llvm::dyn_cast<CallBase>(&instruction_);
    if (branch == nullptr || !branch->isInlineAsm()) return false;
    if (!inline_asm(*branch)) return false;
    out_.clear();  // a terminator: no code can follow it
    return unknown();
  }

  bool intrinsic_store(llvm::IntrinsicInst& call) {
    using namespace llvm;
    if (is_vector_store(call)) return vector_stores(behind(), call, out_) || unknown();
    switch (call.getIntrinsicID()) {
      case Intrinsic::vastart:
      case Intrinsic::vacopy:
        return fixed_bytes(call.getArgOperand(0), 24, 8);
      default:
        break;
    }
    if (!call.mayWriteToMemory() || harmless(call)) return false;
    if (call.getCalledFunction()->getName().starts_with("llvm.x86.") &&
        x86_stores(behind(), call, out_))
      return true;
    for (const Use& argument : call.args())
      if (argument->getType()->isPtrOrPtrVectorTy()) return unknown();
    return false;
  }

  // These are declared to write memory only so that no instruction moves past them.
  static bool harmless(const llvm::IntrinsicInst& call) {
    using namespace llvm;
    if (call.isAssumeLikeIntrinsic() || call.isLifetimeStartOrEnd()) return true;
    switch (call.getIntrinsicID()) {
      case Intrinsic::prefetch:
      case Intrinsic::vaend:
      case Intrinsic::stackrestore:
      case Intrinsic::launder_invariant_group:
      case Intrinsic::strip_invariant_group:
      case Intrinsic::eh_sjlj_longjmp:
      case Intrinsic::eh_sjlj_setjmp:
      case Intrinsic::eh_sjlj_callsite:
      case Intrinsic::clear_cache:
      case Intrinsic::instrprof_increment:
      case Intrinsic::instrprof_increment_step:
        return true;
      default:
        return call.getCalledFunction()->getName().starts_with("llvm.coro.");
    }
  }

  // Calls that the compiler leaves to libatomic: sized ones, __atomic_store_16(at, ...), and the
  // general __atomic_store(bytes, at, ...). The general compare-exchange and exchange also write a
  // result to another address, and the general load writes only its result.
  bool atomic_library_call(CallInst& call) {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->isDeclaration()) return false;
    llvm::StringRef name = callee->getName();
    if (!name.consume_front("__atomic_") || name.starts_with("load_") || name.starts_with("is_") ||
        name.starts_with("thread_") || name.starts_with("signal_"))
      return false;
    const std::size_t underscore = name.rfind('_');
    std::uint64_t bytes = 0;
    const bool sized =
        underscore != llvm::StringRef::npos && !name.substr(underscore + 1).getAsInteger(10, bytes);
    const unsigned first = sized ? 0 : 1;
    if (call.arg_size() < first + 2 || !call.getArgOperand(first)->getType()->isPointerTy())
      return unknown();
    Value* length = sized ? behind_.getInt64(bytes) : call.getArgOperand(0);
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(length))
      bytes = number->getZExtValue();
    const bool is_load = name == "load";
    if (is_load && call.arg_size() < 4) return unknown();
    out_.push_back({call.getArgOperand(is_load ? 2 : first), length, 1, bytes});
    if (name.starts_with("compare_exchange"))
      out_.push_back({call.getArgOperand(first + 1), length, 1, bytes});
    else if (!sized && name.starts_with("exchange"))
      out_.push_back({call.getArgOperand(3), length, 1, bytes});
    return true;
  }

  Instruction& instruction_;
  const llvm::DataLayout& layout_;
  llvm::IRBuilder<> behind_;
  SmallVectorImpl<Extent>& out_;
  bool unknown_ = false;
};

void say_unknown(const Instruction& instruction, llvm::OptimizationRemarkEmitter& remarks) {
  remarks.emit([&] {
    return llvm::OptimizationRemarkMissed(kPassName, "NotUnderstood", &instruction)
           << "this may store to tracked memory in a way that is not understood: call "
              "vellum_mark() "
              "behind it";
  });
}

void say_marked(const Instruction& instruction, llvm::OptimizationRemarkEmitter& remarks) {
  remarks.emit([&] {
    return llvm::OptimizationRemark(kPassName, "Marked", &instruction) << "store marked";
  });
}

// Counts the instruction as the first that applies: not understood, marked, global, stack.
bool mark_behind(Instruction& instruction, Statistics& statistics,
                 llvm::OptimizationRemarkEmitter& remarks) {
  auto* call = llvm::dyn_cast<CallBase>(&instruction);
  if (call != nullptr && mark_strings_behind(*call)) {
    ++statistics.seen;
    ++statistics.marked;
    return true;
  }
  SmallVector<Extent, 8> extents;
  Instruction* next = instruction.getNextNode();  // the finder's code is inserted before it, too
  Finder finder(instruction, extents);
  if (!finder.is_store()) return false;
  ++statistics.seen;
  bool marked = false;
  bool is_other = false;
  for (const Extent& extent : extents) {
    const MemoryKind place = memory_kind_of(extent.at);
    is_other |= place == MemoryKind::other;
    if (place != MemoryKind::may_be_tracked) continue;
    llvm::IRBuilder<> behind(next);
    behind.SetCurrentDebugLocation(instruction.getDebugLoc());
    Mark::insert(behind, extent);
    marked = true;
  }
  if (finder.is_unknown()) {
    ++statistics.unknown;
    say_unknown(instruction, remarks);
  } else if (marked) {
    ++statistics.marked;
    say_marked(instruction, remarks);
  } else {
    ++(is_other ? statistics.global : statistics.stack);
  }
  return marked;
}

}  // namespace

bool insert_marks(llvm::Function& function, Statistics& statistics,
                  llvm::OptimizationRemarkEmitter& remarks) {
  SmallVector<Instruction*, 64> instructions;
  for (llvm::BasicBlock& block : function)
    for (Instruction& instruction : block) instructions.push_back(&instruction);
  bool any = false;
  for (Instruction* instruction : instructions)
    any |= mark_behind(*instruction, statistics, remarks);
  return any;
}

}  // namespace vellum_pass
