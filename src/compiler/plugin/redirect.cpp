// Library functions that write memory, by name: each use of one becomes a use of the runtime's
// vellum_wrap_<name>, which calls the function and marks the bytes that it has written.
#include <llvm/IR/Module.h>

#include <vector>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

constexpr const char* kNames[] = {
#define VELLUM_REDIRECTED(name) #name,
#include "compiler/runtime/redirected.def"
#undef VELLUM_REDIRECTED
};

bool is_redirected(llvm::StringRef name) {
  for (const char* known : kNames)
    if (name == known) return true;
  return false;
}

// The function's promises about memory do not hold for its wrapper, which writes cards.
void replace(llvm::Function& function, llvm::StringRef name) {
  llvm::Module& module = *function.getParent();
  llvm::FunctionCallee wrapper =
      module.getOrInsertFunction(("vellum_wrap_" + name).str(), function.getFunctionType());
  auto* callee = llvm::cast<llvm::Function>(wrapper.getCallee());
  callee->setCallingConv(function.getCallingConv());
  callee->setAttributes(function.getAttributes());
  callee->removeFnAttr(llvm::Attribute::Memory);
  callee->removeFnAttr(llvm::Attribute::NoCallback);
  for (llvm::User* user : function.users()) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    if (call == nullptr || call->getCalledOperand() != &function) continue;
    call->removeFnAttr(llvm::Attribute::Memory);
  }
  function.replaceAllUsesWith(callee);
}

}  // namespace

// Skips functions that the program itself defines: these are instrumented like any other.
unsigned redirect_library_calls(llvm::Module& module) {
  std::vector<llvm::Function*> found;
  for (llvm::Function& function : module)
    if (function.isDeclaration() && !function.use_empty() && !function.isIntrinsic()) {
      llvm::StringRef name = function.getName();
      name.consume_front("\01");
      if (is_redirected(name)) found.push_back(&function);
    }
  unsigned uses = 0;
  for (llvm::Function* function : found) {
    llvm::StringRef name = function->getName();
    name.consume_front("\01");
    uses += function->getNumUses();
    replace(*function, name);
  }
  return uses;
}

}  // namespace vellum_pass
