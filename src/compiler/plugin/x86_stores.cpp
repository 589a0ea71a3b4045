// x86's own intrinsics that store. Those with a general form in LLVM (masked stores, compressing
// ones, most scatters' masks) already have that form.
#include <llvm/ADT/StringSwitch.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::StringRef;
using llvm::Value;

Value* operand(const llvm::CallInst& call, unsigned index) { return call.getArgOperand(index); }

// A mask that selects lanes by their highest bit.
Value* lanes_by_sign(llvm::IRBuilderBase& behind, Value* mask) {
  return behind.CreateICmpSLT(mask, llvm::Constant::getNullValue(mask->getType()));
}

// A mask with one bit for each lane, in a number that may have more bits.
Value* lanes_by_bit(llvm::IRBuilderBase& behind, Value* mask, unsigned count) {
  if (mask->getType()->isVectorTy()) return mask;
  Value* bits = behind.CreateTrunc(mask, behind.getIntNTy(count));
  return behind.CreateBitCast(bits, llvm::FixedVectorType::get(behind.getInt1Ty(), count));
}

unsigned lanes_of(const Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

std::uint64_t scalar_bytes(const Value* vector) {
  return vector->getType()->getScalarSizeInBits() / 8;
}

// avx512.mask.pmov narrows lanes and stores them contiguously. The name ends in the lanes' types
// before and after (q, d, w, b).
std::uint64_t narrowed_bytes(StringRef name) {
  const StringRef letters = name.split(".mem.").first;
  return llvm::StringSwitch<std::uint64_t>(letters.take_back(1))
      .Case("b", 1)
      .Case("w", 2)
      .Case("d", 4)
      .Default(0);
}

// The arguments are (base, mask, index, values, scale); each lane goes to base + index * scale.
void scatter(llvm::IRBuilderBase& behind, const llvm::CallInst& call,
             llvm::SmallVectorImpl<Extent>& out) {
  Value* index = operand(call, 2);
  Value* values = operand(call, 3);
  const unsigned count = std::min(lanes_of(index), lanes_of(values));
  Value* lanes = lanes_by_bit(behind, operand(call, 1), count);
  for (unsigned i = 0; i < count; ++i) {
    Value* offset = behind.CreateSExt(behind.CreateExtractElement(index, i), behind.getInt64Ty());
    offset = behind.CreateMul(offset, behind.CreateSExt(operand(call, 4), behind.getInt64Ty()));
    Value* at = behind.CreateGEP(behind.getInt8Ty(), operand(call, 0), offset);
    at = at_if(behind, behind.CreateExtractElement(lanes, i), at);
    const std::uint64_t bytes = scalar_bytes(values);
    out.push_back({at, behind.getInt64(bytes), 1, bytes});
  }
}

// Intrinsics that store a fixed number of bytes at their first operand.
std::uint64_t fixed_bytes(StringRef name) {
  return llvm::StringSwitch<std::uint64_t>(name)
      .Cases("sse.stmxcsr", "directstore32", "cmpccxadd32", "aadd32", "aand32", 4)
      .Cases("aor32", "axor32", "sse4a.movnt.ss", 4)
      .Cases("directstore64", "cmpccxadd64", "aadd64", "aand64", "aor64", "axor64", 8)
      .Cases("sse4a.movnt.sd", "atomic.bts.64", "atomic.btc.64", "atomic.btr.64", 8)
      .Cases("atomic.bts.32", "atomic.btc.32", "atomic.btr.32", 4)
      .Cases("atomic.bts.16", "atomic.btc.16", "atomic.btr.16", 2)
      .Case("movdir64b", 64)
      .Cases("fxsave", "fxsave64", 512)
      .Default(0);
}

}  // namespace

bool x86_stores(llvm::IRBuilderBase& behind, const llvm::CallInst& call,
                llvm::SmallVectorImpl<Extent>& out) {
  StringRef name = call.getCalledFunction()->getName();
  name.consume_front("llvm.x86.");
  if (name.starts_with("avx.maskstore.") || name.starts_with("avx2.maskstore.")) {
    Value* lanes = lanes_by_sign(behind, operand(call, 1));
    out.push_back(masked_extent(behind, operand(call, 0), lanes, scalar_bytes(operand(call, 2))));
  } else if (name == "sse2.maskmov.dqu") {
    Value* lanes = lanes_by_sign(behind, operand(call, 1));
    out.push_back(masked_extent(behind, operand(call, 2), lanes, 1));
  } else if (name.starts_with("avx512.mask.pmov") && narrowed_bytes(name) != 0) {
    Value* lanes = lanes_by_bit(behind, operand(call, 2), lanes_of(operand(call, 1)));
    out.push_back(masked_extent(behind, operand(call, 0), lanes, narrowed_bytes(name)));
  } else if (name.starts_with("avx512.mask.scatter") || name.starts_with("avx512.scatter")) {
    scatter(behind, call, out);
  } else if (const std::uint64_t bytes = fixed_bytes(name); bytes != 0) {
    out.push_back({operand(call, 0), behind.getInt64(bytes), 1, bytes});
  } else {
    return false;
  }
  return true;
}

}  // namespace vellum_pass
