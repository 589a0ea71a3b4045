// The plugin for clang: -fpass-plugin=VellumCards-<version>.so. It runs after all optimisations of
// a translation unit, so that it sees the stores that the program will execute.
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include <cstdlib>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

constexpr const char* kDone = "vellum-cards";  // a function attribute: the marks are in place

bool wanted(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && llvm::StringRef(value) != "0";
}

// For measurements and tests: VELLUM_CARDS_OFF=merge,loops skips these steps.
bool is_off(llvm::StringRef step) {
  const char* off = std::getenv("VELLUM_CARDS_OFF");
  return off != nullptr && llvm::StringRef(off).contains(step);
}

// Invalidates earlier results about a function's memory accesses: it now reads and writes cards.
void forget_memory_promises(llvm::Module& module) {
  const auto forget = [](auto& promises) {
    for (const auto promise : {llvm::Attribute::Memory, llvm::Attribute::NoSync,
                               llvm::Attribute::NoCallback, llvm::Attribute::Speculatable})
      promises.removeFnAttr(promise);
  };
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    forget(function);
    for (llvm::User* user : function.users()) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call != nullptr && call->getCalledOperand() == &function) forget(*call);
    }
  }
}

class CardsPass : public llvm::PassInfoMixin<CardsPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    if (!llvm::StringRef(module.getTargetTriple()).starts_with("x86_64"))
      return llvm::PreservedAnalyses::all();  // such as code for an accelerator
    Statistics statistics;
    statistics.redirected = redirect_library_calls(module);
    auto& functions =
        analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (llvm::Function& function : module) instrument(function, functions, statistics);
    forget_memory_promises(module);
    if (wanted("VELLUM_CARDS_STATS")) print(module, statistics);
    if (wanted("VELLUM_CARDS_VERIFY") && llvm::verifyModule(module, &llvm::errs()))
      llvm::report_fatal_error("vellum-cards: the module is broken");
    return llvm::PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }  // includes functions without optimisation

 private:
  static void instrument(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                         Statistics& statistics) {
    if (function.isDeclaration() || function.hasAvailableExternallyLinkage() ||
        function.hasFnAttribute(llvm::Attribute::Naked) || function.hasFnAttribute(kDone))
      return;
    function.addFnAttr(kDone);
    auto& remarks = analyses.getResult<llvm::OptimizationRemarkEmitterAnalysis>(function);
    if (!insert_marks(function, statistics, remarks)) return;
    optimize(function, analyses, statistics);
    lower_marks(function);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
  }

  static void optimize(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                       Statistics& statistics) {
    const bool merge = !is_off("merge");
    if (function.hasOptNone()) {
      if (merge) merge_marks(function, nullptr, statistics);
      return;
    }
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
    if (merge) merge_marks(function, &evolution, statistics);
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    if (is_off("loops") || loops.empty()) return;
    auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    sink_marks(loops, dominators, evolution, statistics);
    if (merge) merge_marks(function, &evolution, statistics);
  }

  static void print(const llvm::Module& module, const Statistics& s) {
    llvm::errs() << "vellum-cards: " << module.getSourceFileName() << ": " << s.seen
                 << " stores: " << s.marked << " marked (" << s.merged << " with another, "
                 << s.behind_loops << " behind loops), " << s.stack << " stack, " << s.global
                 << " global, " << s.unknown << " not understood; " << s.redirected
                 << " uses of library functions redirected\n";
  }
};

}  // namespace
}  // namespace vellum_pass

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "VellumCards", "1", [](llvm::PassBuilder& builder) {
            builder.registerOptimizerLastEPCallback(
                [](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) {
                  passes.addPass(vellum_pass::CardsPass());
                });
          }};
}
