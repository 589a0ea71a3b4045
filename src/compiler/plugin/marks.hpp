// compiler/plugin/marks.hpp: the interface between the parts of the pass. A store's mark is first a
// placeholder: a call of a function that does not exist, after the store. Placeholders are merged
// and moved after loops like any instruction, and finally become code.
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

// Counts for a translation unit; printed with VELLUM_CARDS_STATS=1.
struct Statistics {
  unsigned seen = 0, marked = 0, stack = 0, global = 0, unknown = 0;
  unsigned merged = 0, behind_loops = 0, redirected = 0;
};

// Memory that has been stored to: `bytes` from `at`. If `bytes` is not constant, max_bytes bounds
// it (0: no bound). A null `at` means that nothing has been stored; `at` is aligned to `align`.
struct Extent {
  llvm::Value* at = nullptr;
  llvm::Value* bytes = nullptr;
  std::uint64_t align = 1;
  std::uint64_t max_bytes = 0;
};

// The placeholder instruction.
class Mark {
 public:
  static llvm::CallInst* insert(llvm::IRBuilderBase& at, const Extent& extent);
  static bool is(const llvm::Instruction& instruction);
  static Extent extent(const llvm::CallInst& placeholder);
};

// Inserts a placeholder after each store of the function that may reach tracked memory.
bool insert_marks(llvm::Function& function, Statistics& statistics,
                  llvm::OptimizationRemarkEmitter& remarks);

// The kind of memory at an address; other: the program's variables, and addresses without memory.
enum class MemoryKind { may_be_tracked, stack, other };
MemoryKind memory_kind_of(const llvm::Value* address);
bool may_be_tracked(const llvm::Value* address);
// Marks the strings that a member of std::string in libstdc++'s shared library has changed. False:
// the call is not one of these members, or its strings are on the stack.
bool mark_strings_behind(llvm::CallBase& call);

// The stores of the general intrinsics for masked stores, scatters and compressing stores; false if
// the number of lanes is not known.
bool is_vector_store(const llvm::IntrinsicInst& call);
bool vector_stores(llvm::IRBuilderBase& behind, const llvm::IntrinsicInst& call,
                   llvm::SmallVectorImpl<Extent>& out);
// The stores of x86's own intrinsics; false if the intrinsic is unknown.
bool x86_stores(llvm::IRBuilderBase& behind, const llvm::CallInst& call,
                llvm::SmallVectorImpl<Extent>& out);
// The extent from the first to the last set lane, of adjacent lanes from `at` on.
Extent masked_extent(llvm::IRBuilderBase& behind, llvm::Value* at, llvm::Value* lanes,
                     std::uint64_t lane_bytes);
// `at` if the condition holds, otherwise null.
llvm::Value* at_if(llvm::IRBuilderBase& behind, llvm::Value* condition, llvm::Value* at);

// Whether this instruction may commit, or may publish earlier stores to another thread: marks do
// not move past it.
bool is_barrier(const llvm::Instruction& instruction);
// Whether it waits for, or synchronizes with, other threads at all: no mark moves out of a loop
// that contains it.
bool synchronizes(const llvm::Instruction& instruction);

// Joins the marks of each block at its next barrier. `evolution` adds knowledge of addresses; it
// may be null.
void merge_marks(llvm::Function& function, llvm::ScalarEvolution* evolution,
                 Statistics& statistics);
// Moves marks after the loop if they have one address, or adjacent addresses.
void sink_marks(llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                llvm::ScalarEvolution& evolution, Statistics& statistics);
// Turns the placeholders into code.
void lower_marks(llvm::Function& function);

// Redirects library functions that write memory, and those of memory mappings, to the runtime's.
unsigned redirect_library_calls(llvm::Module& module);

}  // namespace vellum_pass
