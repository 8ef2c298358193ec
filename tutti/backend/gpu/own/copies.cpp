// Ops that move elements: Reorder, Reshape, Slice, SliceGrad, MoveBox, Pad, Concat.

#include <memory>
#include <utility>
#include <vector>

#include "tutti/backend/gpu/own/box_move.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/ops/reorder.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::backend {
namespace {

/// Copies each input by a move of its own into the output.
class BoxKernel final : public Kernel {
 public:
  explicit BoxKernel(std::vector<BoxMove> moves) : moves_(std::move(moves)) {}
  void run(const KernelArgs& args) override {
    for (size_t i = 0; i < moves_.size(); ++i) moves_[i].run(*args.stream, args.in[i], args.out[0]);
  }

 private:
  std::vector<BoxMove> moves_;
};

using OwnCopy = std::unique_ptr<Kernel>;

OwnCopy own_reorder(const KernelRequest& r, const ops::Reorder&, const device::Device& device) {
  return std::make_unique<BoxKernel>(std::vector{move_all(device, r.in[0], r.out[0])});
}

TensorDesc plain_copy_of(const TensorDesc& d) { return {d.dtype, d.shape, Layout::plain()}; }

/// Reshapes between two layouts neither of which is plain: through a plain copy, in which equal
/// positions of both shapes meet.
class ReshapeThroughPlain final : public Kernel {
 public:
  ReshapeThroughPlain(const TensorDesc& in, const TensorDesc& out, const device::Device& device)
      : bytes_(in.bytes()), to_plain_(move_all(device, in, plain_copy_of(in))),
        from_plain_(move_all(device, plain_copy_of(out), out)) {}
  size_t workspace_bytes() const override { return bytes_; }
  void run(const KernelArgs& args) override {
    to_plain_.run(*args.stream, args.in[0], args.workspace);
    from_plain_.run(*args.stream, args.workspace, args.out[0]);
  }

 private:
  size_t bytes_;
  BoxMove to_plain_, from_plain_;
};

OwnCopy own_reshape(const KernelRequest& r, const ops::Reshape&, const device::Device& device) {
  const TensorDesc &in = r.in[0], &out = r.out[0];
  if (in.layout.is_plain())
    return std::make_unique<BoxKernel>(std::vector{move_all(device, plain_copy_of(out), out)});
  if (out.layout.is_plain())
    return std::make_unique<BoxKernel>(std::vector{move_all(device, in, plain_copy_of(in))});
  return std::make_unique<ReshapeThroughPlain>(in, out, device);
}

OwnCopy own_slice(const KernelRequest& r, const ops::Slice& op, const device::Device& device) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  const Strides read = strides_of(x), write = strides_of(y);
  std::vector<BoxLoop> loops{{.count = y.shape[0], .to = write[0], .from = read[0]}};
  int64_t start = 0;
  for (size_t d = 1; d < read.size(); ++d) {
    const ops::SliceRange& range = op.ranges()[d - 1];
    loops.push_back({.count = range.count(), .to = write[d], .from = read[d] * range.step});
    start += read[d] * range.start;
  }
  return std::make_unique<BoxKernel>(
      std::vector{BoxMove(device, {x.dtype, y.dtype}, std::move(loops), start, 0)});
}

/// Copies x into a box of y and fills the rest. `ranges`: by dimension after the batch.
OwnCopy copy_into_box(const KernelRequest& r, const std::vector<ops::SliceRange>& ranges,
                      float background, const device::Device& device) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  std::vector<BoxLoop> loops = box_over(x, y);
  for (size_t d = 1; d < loops.size(); ++d) {
    loops[d].first = ranges[d - 1].start;
    loops[d].gap = ranges[d - 1].step;
    loops[d].inside = x.shape[static_cast<int>(d)];
  }
  return std::make_unique<BoxKernel>(std::vector{BoxMove(
      device, {x.dtype, y.dtype}, std::move(loops), 0, 0, repeated_bits(y.dtype, background))});
}

OwnCopy own_slice_grad(const KernelRequest& r, const ops::SliceGrad& op,
                       const device::Device& device) {
  return copy_into_box(r, op.ranges(), 0, device);
}

OwnCopy own_move_box(const KernelRequest& r, const ops::MoveBox& op, const device::Device& device) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  std::vector<BoxLoop> loops = box_over(x, y);
  int64_t start = 0;
  for (size_t d = 1; d < loops.size(); ++d) {
    const ops::SliceRange &from = op.from()[d - 1], &to = op.to()[d - 1];
    start += loops[d].from * from.start;
    loops[d].from *= from.step;
    loops[d].first = to.start;
    loops[d].gap = to.step;
    loops[d].inside = to.count();
  }
  return std::make_unique<BoxKernel>(std::vector{
      BoxMove(device, {x.dtype, y.dtype}, std::move(loops), start, 0, repeated_bits(y.dtype, 0))});
}

OwnCopy own_pad(const KernelRequest& r, const ops::Pad& op, const device::Device& device) {
  std::vector<ops::SliceRange> ranges;
  for (const int64_t low : op.low()) ranges.push_back({.start = low});
  return copy_into_box(r, ranges, op.value(), device);
}

OwnCopy own_concat(const KernelRequest& r, const ops::Concat& op, const device::Device& device) {
  const TensorDesc& y = r.out[0];
  const Strides write = strides_of(y);
  const auto axis = static_cast<size_t>(op.axis());
  std::vector<BoxMove> moves;
  int64_t start = 0;
  for (const TensorDesc& x : r.in) {
    std::vector<BoxLoop> loops;
    const Strides read = strides_of(x);
    for (size_t d = 0; d < read.size(); ++d)
      loops.push_back({.count = x.shape[static_cast<int>(d)], .to = write[d], .from = read[d]});
    moves.emplace_back(device, BoxTypes{x.dtype, y.dtype}, std::move(loops), 0,
                       start * write[axis]);
    start += x.shape[op.axis()];
  }
  return std::make_unique<BoxKernel>(std::move(moves));
}

template <class O>
auto own_copy(OwnCopy (*make)(const KernelRequest&, const O&, const device::Device&)) {
  return [make](const KernelRequest& r, const O& op, const device::Device& device) {
    KernelCandidate c = own_candidate(r, "copies");
    c.refusal = refusal_of_blocks(c);
    if (c.refusal.empty()) c.make = [make, r, op, &device] { return make(r, op, device); };
    return c;
  };
}

}  // namespace

void register_copies(OwnKernels& table) {
  table.add<ops::Reorder>(own_copy(own_reorder));
  table.add<ops::Reshape>(own_copy(own_reshape));
  table.add<ops::Slice>(own_copy(own_slice));
  table.add<ops::SliceGrad>(own_copy(own_slice_grad));
  table.add<ops::MoveBox>(own_copy(own_move_box));
  table.add<ops::Pad>(own_copy(own_pad));
  table.add<ops::Concat>(own_copy(own_concat));
}

}  // namespace tutti::backend
