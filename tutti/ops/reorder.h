#pragma once
// Reorder: the same values in another dtype and, once the plan has chosen layouts, in another
// layout. Models use it to convert (images from u8 to bf16); the plan inserts it where a kernel
// wants weights in another form.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// x -> y of the same shape with dtype `target`; u8 becomes 0...255, conversion to u8 or i32 rounds
/// to nearest and saturates.
class Reorder : public RowByRow<NamedOp<"reorder", kAsBatched>> {
 public:
  explicit Reorder(DType target) : target_(target) {}
  DType target() const { return target_; }
  std::string attributes() const override { return std::string(name_of(target_)); }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  DType target_;
};

}  // namespace tutti::ops
