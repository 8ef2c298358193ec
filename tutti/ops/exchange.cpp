#include "tutti/ops/exchange.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string AllReduceGradients::attributes() const {
  return fmt::format("bucket {}{}", bucket_, sharded_ ? " sharded" : "");
}

std::vector<ValueType> AllReduceGradients::infer(Types in) const {
  require(!in.empty(), "all_reduce_gradients: bucket {} is empty", bucket_);
  for (const ValueType& g : in)
    require(g.desc.dtype == DType::f32 && !g.batched,
            "all_reduce_gradients: {} is not a gradient (f32, unbatched)", g.desc);
  return {};
}

std::string AllReduceNorms::attributes() const {
  std::string text = fmt::format("bucket {}", bucket_);
  if (!slices_.empty()) text += " slices ";
  for (const bool slice : slices_) text += slice ? '1' : '0';
  return text;
}

std::vector<ValueType> AllReduceNorms::infer(Types in) const {
  require(in.size() == 1 && in[0].desc.dtype == DType::f32 && !in[0].batched,
          "all_reduce_norms: one array of block sums (f32, unbatched) is needed");
  return {};
}

std::string AllGatherWeights::attributes() const { return fmt::format("bucket {}", bucket_); }

std::vector<ValueType> AllGatherWeights::infer(Types in) const {
  require(!in.empty(), "all_gather_weights: bucket {} is empty", bucket_);
  for (const ValueType& w : in)
    require(w.desc.dtype == DType::f32 && !w.batched,
            "all_gather_weights: {} is not a parameter (f32, unbatched)", w.desc);
  return {};
}

}  // namespace tutti::ops
