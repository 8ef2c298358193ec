#include "tutti/ops/exchange.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string AllReduceGradients::attributes() const {
  return fmt::format("bucket {}{}", bucket_, sharded_ ? " sharded" : "");
}

std::vector<graph::ValueType> AllReduceGradients::infer(graph::Types in) const {
  require(!in.empty(), "all_reduce_gradients: bucket {} is empty", bucket_);
  for (const graph::ValueType& g : in)
    require(g.desc.dtype == DType::f32 && !g.batched,
            "all_reduce_gradients: {} is not a gradient (f32, unbatched)", g.desc.to_string());
  return {};
}

std::string AllReduceNorms::attributes() const {
  std::string text = fmt::format("bucket {}", bucket_);
  if (!slices_.empty()) text += " slices ";
  for (const bool slice : slices_) text += slice ? '1' : '0';
  return text;
}

std::vector<graph::ValueType> AllReduceNorms::infer(graph::Types in) const {
  require(in.size() == 1 && in[0].desc.dtype == DType::f32 && !in[0].batched,
          "all_reduce_norms: one array of block sums (f32, unbatched) is needed");
  return {};
}

std::string AllGatherWeights::attributes() const { return fmt::format("bucket {}", bucket_); }

std::vector<graph::ValueType> AllGatherWeights::infer(graph::Types in) const {
  require(!in.empty(), "all_gather_weights: bucket {} is empty", bucket_);
  for (const graph::ValueType& w : in)
    require(w.desc.dtype == DType::f32 && !w.batched,
            "all_gather_weights: {} is not a parameter (f32, unbatched)", w.desc.to_string());
  return {};
}

}  // namespace tutti::ops
