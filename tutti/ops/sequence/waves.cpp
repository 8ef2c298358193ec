#include "tutti/ops/sequence/waves.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// Throws unless there is a sequence, followed by its positions or nothing.
void require_waves(std::string_view op, Types in, double base) {
  require(in.size() == 1 || in.size() == 2, "{}: {} inputs given, 1 or 2 expected", op, in.size());
  require_batched(op, in[0], 3);
  const Shape& x = in[0].desc.shape;
  require(x.rank() == 3, "{}: needs a sequence [N, channels, positions], met {}", op, in[0].desc);
  require(base > 0, "{}: the base is {}, it must be positive", op, base);
  if (in.size() == 2)
    require(
        in[1].batched && in[1].desc.dtype == DType::i32 && in[1].desc.shape == Shape{x[0], x[2]},
        "{}: positions {} for x {}: i32 [{}, {}] is needed", op, in[1].desc, x, x[0], x[2]);
}

/// Returns a gradient for the sequence, and none for its positions.
std::vector<Value> of_sequence(Value dx, size_t inputs) {
  std::vector<Value> din(inputs);
  din[0] = dx;
  return din;
}

}  // namespace

std::string AddSinusoids::attributes() const { return fmt::format("base {}", base_); }

std::vector<ValueType> AddSinusoids::infer(Types in) const {
  require_waves(name(), in, base_);
  return {in[0]};
}

std::vector<Value> AddSinusoids::grad(const GradArgs& args) const {
  return of_sequence(args.dout[0], args.node.in.size());
}

std::string RotationAttributes::to_string() const {
  return fmt::format("heads {} of {} base {}{}", heads, width, base, back ? " back" : "");
}

std::vector<ValueType> Rotate::infer(Types in) const {
  require_waves(name(), in, a_.base);
  require(a_.heads >= 1 && a_.width >= 2 && a_.width % 2 == 0 &&
              a_.heads * a_.width <= in[0].desc.shape[1],
          "rotate: {} heads of {} channels in x {}: heads of an even width that lie in it are "
          "needed",
          a_.heads, a_.width, in[0].desc.shape);
  return {in[0]};
}

std::vector<Value> Rotate::grad(const GradArgs& args) const {
  RotationAttributes back = a_;
  back.back = !a_.back;
  std::vector<Value> in(args.node.in);
  in[0] = args.dout[0];
  return of_sequence(args.append1(".dx", std::make_shared<Rotate>(back), in), in.size());
}

}  // namespace tutti::ops
