// Vector stores that skip lanes, or that store lanes to separate addresses.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include "compiler/plugin/marks.hpp"

namespace vellum_pass {
namespace {

using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::Value;

unsigned lanes_of(const Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

std::uint64_t lane_bytes(const llvm::IntrinsicInst& call, const Value* values) {
  const llvm::DataLayout& layout = call.getModule()->getDataLayout();
  return layout.getTypeStoreSize(values->getType()->getScalarType()).getFixedValue();
}

// The llvm.vp intrinsics store only the first `count` lanes.
Value* first_lanes(llvm::IRBuilderBase& behind, Value* mask, Value* count) {
  SmallVector<llvm::Constant*, 64> numbers;
  for (unsigned i = 0; i < lanes_of(mask); ++i) numbers.push_back(behind.getInt32(i));
  Value* limit = behind.CreateVectorSplat(lanes_of(mask), count);
  return behind.CreateAnd(mask, behind.CreateICmpULT(llvm::ConstantVector::get(numbers), limit));
}

void scatter(llvm::IRBuilderBase& behind, const llvm::IntrinsicInst& call, Value* mask,
             SmallVectorImpl<Extent>& out) {
  const std::uint64_t bytes = lane_bytes(call, call.getArgOperand(0));
  for (unsigned i = 0; i < lanes_of(mask); ++i) {
    Value* at = behind.CreateExtractElement(call.getArgOperand(1), i);
    at = at_if(behind, behind.CreateExtractElement(mask, i), at);
    out.push_back({at, behind.getInt64(bytes), 1, bytes});
  }
}

// The lanes of the mask are stored side by side.
void compress(llvm::IRBuilderBase& behind, const llvm::IntrinsicInst& call,
              SmallVectorImpl<Extent>& out) {
  Value* mask = call.getArgOperand(2);
  const std::uint64_t bytes = lane_bytes(call, call.getArgOperand(0));
  Value* bits = behind.CreateBitCast(mask, behind.getIntNTy(lanes_of(mask)));
  bits = behind.CreateZExt(bits, behind.getInt64Ty());
  Value* lanes = behind.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
  Value* any = behind.CreateICmpNE(bits, behind.getInt64(0));
  Value* at = at_if(behind, any, call.getArgOperand(1));
  out.push_back({at, behind.CreateMul(lanes, behind.getInt64(bytes)), 1, bytes * lanes_of(mask)});
}

}  // namespace

Value* at_if(llvm::IRBuilderBase& behind, Value* condition, Value* at) {
  return behind.CreateSelect(condition, at, llvm::Constant::getNullValue(at->getType()));
}

Extent masked_extent(llvm::IRBuilderBase& behind, Value* at, Value* lanes,
                     std::uint64_t lane_bytes) {
  const unsigned count = llvm::cast<llvm::FixedVectorType>(lanes->getType())->getNumElements();
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(lanes);
      constant != nullptr && constant->isAllOnesValue())
    return {at, behind.getInt64(count * lane_bytes), 1, count * lane_bytes};
  llvm::Type* type = behind.getIntNTy(std::max(64U, count));
  Value* bits = behind.CreateZExt(behind.CreateBitCast(lanes, behind.getIntNTy(count)), type);
  Value* first = behind.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, behind.getFalse());
  Value* above = behind.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, bits, behind.getFalse());
  Value* end = behind.CreateSub(llvm::ConstantInt::get(type, type->getIntegerBitWidth()), above);
  Value* any = behind.CreateICmpNE(bits, llvm::ConstantInt::get(type, 0));
  const auto bytes = [&](Value* lanes_before) {
    return behind.CreateMul(behind.CreateZExtOrTrunc(lanes_before, behind.getInt64Ty()),
                            behind.getInt64(lane_bytes));
  };
  Value* from = bytes(first);
  Value* begin = behind.CreateGEP(behind.getInt8Ty(), at, from);
  return {at_if(behind, any, begin), behind.CreateSub(bytes(end), from), 1, count * lane_bytes};
}

bool is_vector_store(const llvm::IntrinsicInst& call) {
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter:
    case llvm::Intrinsic::masked_compressstore:
    case llvm::Intrinsic::vp_store:
    case llvm::Intrinsic::vp_scatter:
      return true;
    default:
      return false;
  }
}

bool vector_stores(llvm::IRBuilderBase& behind, const llvm::IntrinsicInst& call,
                   SmallVectorImpl<Extent>& out) {
  const Value* values = call.getArgOperand(0);
  if (!llvm::isa<llvm::FixedVectorType>(values->getType())) return false;
  Value* at = call.getArgOperand(1);
  const auto& operand = [&](unsigned i) { return call.getArgOperand(i); };
  const auto with_count = [&] { return first_lanes(behind, operand(2), operand(3)); };
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
      out.push_back(masked_extent(behind, at, operand(3), lane_bytes(call, values)));
      return true;
    case llvm::Intrinsic::vp_store:
      out.push_back(masked_extent(behind, at, with_count(), lane_bytes(call, values)));
      return true;
    case llvm::Intrinsic::masked_scatter:
      scatter(behind, call, operand(3), out);
      return true;
    case llvm::Intrinsic::vp_scatter:
      scatter(behind, call, with_count(), out);
      return true;
    default:
      compress(behind, call, out);
      return true;
  }
}

}  // namespace vellum_pass
