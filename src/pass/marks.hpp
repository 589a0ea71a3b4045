// pass/marks.hpp: what the parts of the pass hand to one another.
//
// A store's mark is first a placeholder: a call of a function that does not exist, behind the
// store. Placeholders are merged and moved behind loops like any instruction, and at last become
// code.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstdint>

namespace vellum_pass {

inline constexpr const char* kPassName = "vellum-cards";  // for -Rpass=
inline constexpr std::uint64_t kCardBytes = 64;

// Of a translation unit; printed with VELLUM_CARDS_STATS=1.
struct Statistics {
  unsigned seen = 0, marked = 0, stack = 0, global = 0, unknown = 0;
  unsigned merged = 0, behind_loops = 0, redirected = 0;
};

// Memory that has been stored to: `bytes` from `at`. Where bytes is no constant, max_bytes bounds
// it (0: nothing does). `at` may be null, then nothing has been stored; it is aligned to `align`.
struct Extent {
  llvm::Value* at = nullptr;
  llvm::Value* bytes = nullptr;
  std::uint64_t align = 1;
  std::uint64_t max_bytes = 0;
};

// The placeholder as an instruction.
class Mark {
 public:
  static llvm::CallInst* insert(llvm::IRBuilderBase& at, const Extent& extent);
  static bool is(const llvm::Instruction& instruction);
  static Extent extent(const llvm::CallInst& placeholder);
};

// Puts a placeholder behind each store of the function that may reach tracked memory.
bool insert_marks(llvm::Function& function, Statistics& statistics,
                  llvm::OptimizationRemarkEmitter& remarks);

// What may lie at an address; elsewhere: the program's variables, and what is no memory.
enum class Place { may_be_tracked, stack, elsewhere };
Place place_of(const llvm::Value* address);
bool may_be_tracked(const llvm::Value* address);
// Marks the strings that a member of std::string in libstdc++'s shared library has changed; false
// if this is no call of one, or its strings are on the stack.
bool mark_strings_behind(llvm::CallBase& call);

// What the general intrinsics for masked stores, scatters and compressing stores store; false where
// the number of lanes is not known.
bool is_vector_store(const llvm::IntrinsicInst& call);
bool vector_stores(llvm::IRBuilderBase& behind, const llvm::IntrinsicInst& call,
                   llvm::SmallVectorImpl<Extent>& out);
// What x86's own intrinsics store; false if this is none that is known.
bool x86_stores(llvm::IRBuilderBase& behind, const llvm::CallInst& call,
                llvm::SmallVectorImpl<Extent>& out);
// An extent from the first to the last lane that is set, of lanes that lie side by side from `at`.
Extent masked_extent(llvm::IRBuilderBase& behind, llvm::Value* at, llvm::Value* lanes,
                     std::uint64_t lane_bytes);
// `at` where the condition holds, else null.
llvm::Value* at_if(llvm::IRBuilderBase& behind, llvm::Value* condition, llvm::Value* at);

// Whether a commit may happen in this instruction, or another thread may learn from it what has
// been stored before: marks do not move past it.
bool is_barrier(const llvm::Instruction& instruction);
// Whether it waits for, or talks to, other threads at all: no mark leaves a loop with such.
bool synchronizes(const llvm::Instruction& instruction);

// Joins the marks of each block, at its next barrier; with what evolution (or null) knows of
// addresses.
void merge_marks(llvm::Function& function, llvm::ScalarEvolution* evolution,
                 Statistics& statistics);
// Moves marks of one place, or of places side by side, behind the loop.
void sink_marks(llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                llvm::ScalarEvolution& evolution, Statistics& statistics);
// Turns the placeholders into code.
void lower_marks(llvm::Function& function);

// Library functions that write memory, and those of memory mappings, become the runtime's.
unsigned redirect_library_calls(llvm::Module& module);

}  // namespace vellum_pass
