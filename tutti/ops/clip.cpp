#include "tutti/ops/clip.h"

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::vector<ValueType> GradientSquares::infer(Types in) const {
  std::vector<ValueType> out = Update::infer(in);
  out[0].desc.shape = Shape{out[0].desc.shape[0], 1};
  return out;
}

std::string ClipScale::attributes() const { return fmt::format("limit {}", a_.limit); }

std::vector<ClipScale::Blocks> ClipScale::blocks(std::span<const TensorDesc> in) const {
  std::vector<Blocks> of_parameters, ordered;
  size_t at = first_parameter();
  for (size_t set = 0; set < a_.parameters.size(); ++set) {
    int64_t row = 0;
    for (int i = 0; i < a_.parameters[set]; ++i, ++at) {
      const int64_t count = sum_blocks(in[at].layout.storage_elements(in[at].shape));
      of_parameters.push_back({1 + set, row, count});
      row += count;
    }
  }
  for (const int p : a_.order) ordered.push_back(of_parameters[static_cast<size_t>(p)]);
  return ordered;
}

std::vector<ValueType> ClipScale::infer(Types in) const {
  require(in.size() == first_parameter() + a_.order.size(),
          "clip_scale: {} inputs given, {} expected", in.size(),
          first_parameter() + a_.order.size());
  std::vector<TensorDesc> descs;
  for (const ValueType& type : in) {
    require(type.desc.dtype == DType::f32 && !type.batched,
            "clip_scale: {} is not f32, or has a batch", type.desc);
    descs.push_back(type.desc);
  }
  require(descs[0].shape.rank() == 0, "clip_scale: input 0 is {}, a scalar is needed", descs[0]);
  std::vector<int64_t> rows(first_parameter(), 0);
  for (const Blocks& blocks : blocks(descs)) rows[blocks.input] += blocks.count;
  for (size_t set = 1; set < rows.size(); ++set)
    require(descs[set].shape == Shape{rows[set], 1},
            "clip_scale: block sums are {}, the parameters have {} blocks", descs[set], rows[set]);
  const ValueType scalar{{DType::f32, Shape{}, {}}, false};
  return {scalar, scalar};
}

}  // namespace tutti::ops
