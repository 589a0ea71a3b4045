// Members of std::string that are not compiled into the program, but are in libstdc++'s shared
// library (up to C++17). They change the characters and the object: 32 bytes that begin with a
// pointer to the characters and their number. Without optimisation, the program also calls the
// small parts, between which a string is inconsistent: its size must not be read then.
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

constexpr std::uint64_t kStringBytes = 32;
constexpr std::uint64_t kSizeOffset = 8;

enum class Change { none, object, whole_string, characters };

struct StringMember {
  Change change = Change::none;
  std::uint64_t character_bytes = 1;
  bool second_too = false;  // swap(), and members that take over another string's content
};

bool starts_with_any(llvm::StringRef name, llvm::ArrayRef<const char*> starts) {
  return llvm::any_of(starts, [&](const char* start) { return name.starts_with(start); });
}

// Decides by the mangled name: const members begin with _ZNK; destructors (D1, D2) leave no string.
StringMember member_of(llvm::StringRef name) {
  StringMember member;
  if (name.consume_front("_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE")) {
    member.character_bytes = 4;
  } else if (!name.consume_front("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE")) {
    return member;
  }
  static constexpr const char* kWhole[] = {"C1",
                                           "C2",
                                           "aS",
                                           "pL",
                                           "6append",
                                           "6assign",
                                           "6insert",
                                           "7replace",
                                           "5erase",
                                           "9push_back",
                                           "8pop_back",
                                           "6resize",
                                           "5clear",
                                           "7reserve",
                                           "13shrink_to_fit",
                                           "4swap",
                                           "9_M_append",
                                           "9_M_assign",
                                           "10_M_replace",
                                           "14_M_replace_aux",
                                           "15_M_replace_cold",
                                           "8_M_erase",
                                           "12_M_construct",
                                           "13_M_set_length"};
  static constexpr const char* kObject[] = {"12_Alloc_hider", "7_M_data", "9_M_length",
                                            "11_M_capacity", "9_M_mutate"};
  static constexpr const char* kCharacters[] = {"7_S_copy", "7_S_move", "9_S_assign",
                                                "13_S_copy_chars"};
  if (starts_with_any(name, kWhole)) member.change = Change::whole_string;
  if (starts_with_any(name, kObject)) member.change = Change::object;
  if (starts_with_any(name, kCharacters)) member.change = Change::characters;
  member.second_too = name.contains("EOS") || name.starts_with("4swap");
  return member;
}
// getline() and operator>> for strings.
bool reads_into_second(llvm::StringRef name, std::uint64_t& character_bytes) {
  if (!starts_with_any(name, {"_ZSt7getlineI", "_ZStrsI"}) || !name.contains("basic_string"))
    return false;
  character_bytes = name.contains("Iw") ? 4 : 1;
  return true;
}

// The first position after the call; for an invoke, on the edge to the normal destination.
llvm::Instruction* position_after(llvm::CallBase& call) {
  auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call);
  if (invoke == nullptr) return call.getNextNode();
  llvm::BasicBlock* normal = invoke->getNormalDest();
  if (normal->getSinglePredecessor() == nullptr)
    normal = llvm::SplitEdge(invoke->getParent(), normal);
  return &*normal->getFirstInsertionPt();
}

void mark_string(llvm::IRBuilder<>& behind, llvm::Value* string, const StringMember& member) {
  Mark::insert(behind, {string, behind.getInt64(kStringBytes), 1, kStringBytes});
  if (member.change == Change::object) return;
  llvm::Type* pointer = llvm::PointerType::get(behind.getContext(), 0);
  llvm::Value* size_at = behind.CreateConstInBoundsGEP1_64(behind.getInt8Ty(), string, kSizeOffset);
  llvm::Value* data = behind.CreateLoad(pointer, string);
  llvm::Value* count =
      behind.CreateAdd(behind.CreateLoad(behind.getInt64Ty(), size_at), behind.getInt64(1));
  Mark::insert(behind,
               {data, behind.CreateMul(count, behind.getInt64(member.character_bytes)), 1, 0});
}

// The arguments are (to, from, count), (to, count, character) or (to, begin, end).
void mark_characters(llvm::IRBuilder<>& behind, const llvm::CallBase& call,
                     const StringMember& member) {
  llvm::Type* i64 = behind.getInt64Ty();
  llvm::Value* last = call.getArgOperand(2);
  llvm::Value* bytes = nullptr;
  if (last->getType()->isPointerTy()) {
    bytes = behind.CreateSub(behind.CreatePtrToInt(last, i64),
                             behind.CreatePtrToInt(call.getArgOperand(1), i64));
  } else {
    const bool second = call.getArgOperand(1)->getType()->isIntegerTy(64);
    bytes = behind.CreateMul(second ? call.getArgOperand(1) : last,
                             behind.getInt64(member.character_bytes));
  }
  Mark::insert(behind, {call.getArgOperand(0), bytes, 1, 0});
}

}  // namespace

bool mark_strings_behind(llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || !callee->isDeclarationForLinker() || llvm::isa<llvm::CallBrInst>(call) ||
      call.isMustTailCall())
    return false;
  StringMember member = member_of(callee->getName());
  llvm::SmallVector<unsigned, 2> strings;
  const unsigned first =
      call.hasStructRetAttr() ? 1 : 0;  // a result by value is the first argument
  if (reads_into_second(callee->getName(), member.character_bytes)) {
    member.change = Change::whole_string;
    strings = {first + 1};
  } else if (member.change != Change::none) {
    strings = {first};
    if (member.second_too) strings.push_back(first + 1);
  }
  bool marked = false;
  for (const unsigned operand : strings) {
    if (operand >= call.arg_size() || !may_be_tracked(call.getArgOperand(operand))) continue;
    llvm::IRBuilder<> behind(position_after(call));
    behind.SetCurrentDebugLocation(call.getDebugLoc());
    if (member.change == Change::characters) {
      if (call.arg_size() == 3) mark_characters(behind, call, member);
    } else {
      mark_string(behind, call.getArgOperand(operand), member);
    }
    marked = true;
  }
  return marked;
}

}  // namespace vellum_pass
