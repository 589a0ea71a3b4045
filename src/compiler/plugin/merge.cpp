// Joins the marks of a block. Marks are delayed until the next barrier, or the end of the block.
// Marks at constant distances become one if the memory between them contains no whole card.
#include <llvm/IR/Module.h>

#include <algorithm>
#include <tuple>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::CallInst;
using llvm::SmallVector;
using llvm::Value;

struct MarkedRange {
  CallInst* placeholder;
  std::int64_t begin, end;  // offsets from the base
  std::uint64_t align;      // of base + begin
};

// Joins ranges with one base into larger ones.
class Joiner {
 public:
  Joiner(llvm::Instruction* before, Statistics& statistics)
      : before_(before), statistics_(statistics) {}

  void join(Value* base, SmallVector<MarkedRange, 8>& pieces) {
    std::sort(pieces.begin(), pieces.end(), [](const MarkedRange& a, const MarkedRange& b) {
      return std::tuple(a.begin, a.end, a.align) < std::tuple(b.begin, b.end, b.align);
    });
    for (std::size_t first = 0; first < pieces.size();) {
      std::size_t next = first + 1;
      MarkedRange whole = pieces[first];
      while (next < pieces.size() && grow(whole, pieces[next])) ++next;
      emit(base, whole, pieces, first, next);
      first = next;
    }
  }

 private:
  // Joins ranges that are adjacent, or that two checks cover together. A gap of less than a card
  // contains no whole card, so every marked card has a store.
  static bool grow(MarkedRange& whole, const MarkedRange& piece) {
    const std::int64_t end = std::max(whole.end, piece.end);
    const bool close = end - whole.begin <= static_cast<std::int64_t>(kCardBytes);
    if (piece.begin > whole.end && !close) return false;
    // The larger alignment determines where cards begin, if it also holds for the first byte.
    const auto distance = static_cast<std::uint64_t>(piece.begin - whole.begin);
    if (piece.align > whole.align && distance % piece.align == 0) whole.align = piece.align;
    whole.end = end;
    return true;
  }

  void emit(Value* base, const MarkedRange& whole, const SmallVector<MarkedRange, 8>& pieces,
            std::size_t first, std::size_t next) {
    llvm::IRBuilder<> builder(before_);
    builder.SetCurrentDebugLocation(pieces[first].placeholder->getDebugLoc());
    Value* at = base;
    if (whole.begin != 0)
      at = builder.CreateGEP(builder.getInt8Ty(), base,
                             builder.getInt64(static_cast<std::uint64_t>(whole.begin)));
    const auto bytes = static_cast<std::uint64_t>(whole.end - whole.begin);
    Mark::insert(builder, {at, builder.getInt64(bytes), whole.align, bytes});
    statistics_.merged += static_cast<unsigned>(next - first - 1);
  }

  llvm::Instruction* before_;
  Statistics& statistics_;
};

// Ranges at constant distances, found by the common base of their addresses. For addresses that are
// computed separately (p + i + 1, p + i + 2), ScalarEvolution finds the distance.
class Families {
 public:
  Families(const llvm::DataLayout& layout, llvm::ScalarEvolution* evolution)
      : layout_(layout), evolution_(evolution) {}

  struct Family {
    Value* base;
    SmallVector<MarkedRange, 8> pieces;
  };

  void add(CallInst& placeholder, const Extent& extent, std::int64_t bytes) {
    llvm::APInt offset(64, 0);
    Value* base = extent.at->stripAndAccumulateConstantOffsets(layout_, offset, true);
    std::int64_t begin = offset.getSExtValue();
    Family* family = find(base, begin);
    if (family == nullptr) {
      families_.push_back({base, {}});
      family = &families_.back();
    }
    family->pieces.push_back({&placeholder, begin, begin + bytes, extent.align});
  }
  SmallVector<Family, 8>& all() { return families_; }

 private:
  static constexpr std::size_t kMaxCompared = 16;  // the latest ones: this must not be quadratic

  Family* find(Value* base, std::int64_t& begin) {
    for (Family& family : families_)
      if (family.base == base) return &family;
    if (evolution_ == nullptr) return nullptr;
    std::size_t compared = 0;
    for (Family& family : llvm::reverse(families_)) {
      if (++compared > kMaxCompared) break;
      const auto distance = evolution_->computeConstantDifference(evolution_->getSCEV(base),
                                                                  evolution_->getSCEV(family.base));
      if (!distance || distance->getSignificantBits() > 32) continue;
      begin += distance->getSExtValue();
      return &family;
    }
    return nullptr;
  }

  const llvm::DataLayout& layout_;
  llvm::ScalarEvolution* evolution_;
  SmallVector<Family, 8> families_;  // in the order of their first marks
};

void flush(SmallVector<CallInst*, 16>& waiting, llvm::Instruction* before,
           llvm::ScalarEvolution* evolution, Statistics& statistics) {
  Families families(before->getModule()->getDataLayout(), evolution);
  for (CallInst* placeholder : waiting) {
    const Extent extent = Mark::extent(*placeholder);
    if (const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(extent.bytes)) {
      families.add(*placeholder, extent, bytes->getSExtValue());
    } else {
      placeholder->moveBefore(before);
    }
  }
  for (auto& family : families.all()) {
    Joiner(before, statistics).join(family.base, family.pieces);
    for (const MarkedRange& piece : family.pieces) piece.placeholder->eraseFromParent();
  }
  waiting.clear();
}

}  // namespace

void merge_marks(llvm::Function& function, llvm::ScalarEvolution* evolution,
                 Statistics& statistics) {
  for (llvm::BasicBlock& block : function) {
    SmallVector<CallInst*, 16> waiting;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
      if (Mark::is(instruction)) {
        waiting.push_back(llvm::cast<CallInst>(&instruction));
      } else if (!waiting.empty() && (is_barrier(instruction) || instruction.isTerminator())) {
        flush(waiting, &instruction, evolution, statistics);
      }
    }
  }
}

}  // namespace vellum_pass
