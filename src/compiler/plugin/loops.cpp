// Marks that can be delayed until the end of a loop. The loop neither commits nor synchronizes with
// another thread, and stores in every iteration, to one address or to adjacent addresses. After the
// loop, the mark covers the one address, or the range from the first iteration's address to the
// last one's. The last address needs no count of iterations: it is the store's address at the exit
// of the loop.
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Loop;
using llvm::SmallVector;
using llvm::Value;

constexpr unsigned kMaxExits = 6;  // each gets a copy of the code

class Sinker {
 public:
  Sinker(Loop& loop, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
         llvm::ScalarEvolution& evolution, Statistics& statistics)
      : loop_(loop),
        loops_(loops),
        dominators_(dominators),
        evolution_(evolution),
        layout_(loop.getHeader()->getModule()->getDataLayout()),
        statistics_(statistics) {}

  void sink() {
    SmallVector<CallInst*, 8> candidates;
    for (BasicBlock* block : loop_.blocks()) {
      for (llvm::Instruction& instruction : *block) {
        if (synchronizes(instruction)) return;
        if (Mark::is(instruction)) candidates.push_back(llvm::cast<CallInst>(&instruction));
      }
    }
    if (candidates.empty()) return;
    loop_.getExitingBlocks(exiting_);
    llvm::erase_if(candidates, [&](const CallInst* mark) { return !in_every_round(*mark); });
    if (candidates.empty() || !prepare_exits()) return;
    for (CallInst* mark : candidates) {
      if (!sink_same_place(*mark) && !sink_side_by_side(*mark)) continue;
      mark->eraseFromParent();
      ++statistics_.behind_loops;
    }
  }

 private:
  // Only then have all bytes that are marked after the loop been stored to.
  bool in_every_round(const CallInst& mark) {
    const BasicBlock* block = mark.getParent();
    if (exiting_.empty() || loops_.getLoopFor(block) != &loop_) return false;
    SmallVector<BasicBlock*, 4> ends(exiting_);
    loop_.getLoopLatches(ends);
    return llvm::all_of(ends, [&](BasicBlock* end) { return dominators_.dominates(block, end); });
  }

  // Gives the loop exit blocks that are entered only from the loop.
  bool prepare_exits() {
    llvm::formDedicatedExitBlocks(&loop_, &dominators_, &loops_, nullptr, false);
    loop_.getUniqueExitBlocks(exits_);
    return loop_.hasDedicatedExits() && !exits_.empty() && exits_.size() <= kMaxExits &&
           llvm::none_of(exits_, [](BasicBlock* exit) { return exit->isEHPad(); });
  }

  bool sink_same_place(const CallInst& mark) {
    Extent extent = Mark::extent(mark);
    llvm::APInt offset(64, 0);
    Value* base = extent.at->stripAndAccumulateConstantOffsets(layout_, offset, true);
    if (!loop_.isLoopInvariant(base) || !loop_.isLoopInvariant(extent.bytes)) return false;
    for (BasicBlock* exit : exits_) {
      llvm::IRBuilder<> builder(&*exit->getFirstInsertionPt());
      builder.SetCurrentDebugLocation(mark.getDebugLoc());
      extent.at =
          builder.CreateGEP(builder.getInt8Ty(), base, builder.getInt64(offset.getZExtValue()));
      Mark::insert(builder, extent);
    }
    return true;
  }

  // Each card in the range must have a store: two iterations' stores are less than a card apart.
  bool sink_side_by_side(const CallInst& mark) {
    const Extent extent = Mark::extent(mark);
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(extent.bytes);
    if (bytes == nullptr) return false;
    const auto* address = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(extent.at));
    if (address == nullptr || address->getLoop() != &loop_ || !address->isAffine()) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(evolution_));
    const std::int64_t length = bytes->getSExtValue();
    if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return false;
    const std::int64_t stride = step->getAPInt().getSExtValue();
    if (std::abs(stride) - length >= static_cast<std::int64_t>(kCardBytes)) return false;
    Value* first = first_address(*address);
    if (first == nullptr) return false;
    for (BasicBlock* exit : exits_) mark_range(mark, first, stride > 0, *exit);
    return true;
  }

  Value* first_address(const llvm::SCEVAddRecExpr& address) {
    BasicBlock* before = loop_.getLoopPreheader();
    if (before == nullptr)
      before = llvm::InsertPreheaderForLoop(&loop_, &dominators_, &loops_, nullptr, false);
    if (before == nullptr) return nullptr;
    llvm::SCEVExpander expander(evolution_, layout_, "vellum");
    llvm::Instruction* at = before->getTerminator();
    const llvm::SCEV* start = address.getStart();
    if (!expander.isSafeToExpandAt(start, at)) return nullptr;
    return expander.expandCodeFor(start, llvm::PointerType::get(before->getContext(), 0), at);
  }

  void mark_range(const CallInst& mark, Value* first, bool upwards, BasicBlock& exit) {
    const Extent extent = Mark::extent(mark);
    llvm::IRBuilder<> builder(&exit, exit.begin());
    builder.SetCurrentDebugLocation(mark.getDebugLoc());
    auto* last = builder.CreatePHI(extent.at->getType(), llvm::pred_size(&exit));
    for (BasicBlock* from : llvm::predecessors(&exit)) last->addIncoming(extent.at, from);
    builder.SetInsertPoint(&*exit.getFirstInsertionPt());
    Value* begin = upwards ? first : last;
    Value* end = upwards ? last : first;
    Value* distance = builder.CreateSub(builder.CreatePtrToInt(end, builder.getInt64Ty()),
                                        builder.CreatePtrToInt(begin, builder.getInt64Ty()));
    Mark::insert(builder, {begin, builder.CreateAdd(distance, extent.bytes), 1, 0});
  }

  Loop& loop_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const llvm::DataLayout& layout_;
  Statistics& statistics_;
  SmallVector<BasicBlock*, 4> exiting_;
  SmallVector<BasicBlock*, 4> exits_;
};

}  // namespace

void sink_marks(llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                llvm::ScalarEvolution& evolution, Statistics& statistics) {
  // Inner loops are first: the marks after them may move further.
  SmallVector<Loop*, 8> outer_first(loops.getLoopsInPreorder());
  for (Loop* loop : llvm::reverse(outer_first))
    Sinker(*loop, loops, dominators, evolution, statistics).sink();
}

}  // namespace vellum_pass
