// Reshape, Slice, SliceGrad, MoveBox, Pad, Concat: boxes of elements are copied between layouts.

#include <algorithm>
#include <bit>
#include <cstring>

#include "tutti/backend/cpu/kernel/box_copy.h"
#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::backend {
namespace {

using Box =
    std::vector<ops::SliceRange>;  ///< by dimension: index = start + step * index in the box

/// Returns the offsets of the elements of a box with extents `box` in the tensor that contains it.
BoxCopy::Terms terms_of_box(const TensorDesc& whole, const Shape& box, const Box& ranges) {
  BoxCopy::Terms terms;
  for (int d = 0; d < box.rank(); ++d) {
    const std::vector<int64_t> all = whole.layout.terms(whole.shape, d);
    const ops::SliceRange range = static_cast<size_t>(d) < ranges.size()
                                      ? ranges[static_cast<size_t>(d)]
                                      : ops::SliceRange{};  // from 0 on, step 1
    std::vector<int64_t>& part = terms.emplace_back();
    for (int64_t i = 0; i < box[d]; ++i)
      part.push_back(all[static_cast<size_t>(range.start + range.step * i)]);
  }
  return terms;
}

TensorDesc plain(const TensorDesc& d) { return {d.dtype, d.shape, {}}; }

class CopyKernel final : public Kernel {
 public:
  CopyKernel(const TensorDesc& out, std::vector<BoxCopy> copies)
      : copies_(std::move(copies)), size_(size_of(out.dtype)),
        elements_(static_cast<size_t>(out.elements())) {}
  /// Sets the value of elements that the boxes leave free.
  void set_background(DType type, float value) {
    filled_ = true;
    switch (type) {
      case DType::f32: background_ = std::bit_cast<uint32_t>(value); break;
      case DType::bf16: background_ = bf16(value).bits; break;
      case DType::i32: background_ = static_cast<uint32_t>(static_cast<int32_t>(value)); break;
      case DType::u8: background_ = static_cast<uint8_t>(value); break;
    }
  }

  void run(const KernelArgs& args) override {
    if (filled_) fill(args.out[0]);
    for (size_t i = 0; i < copies_.size(); ++i) copies_[i].run(args.in[i], args.out[0], size_);
  }

 private:
  void fill(void* out) const {
    if (size_ == 4)
      std::fill_n(static_cast<uint32_t*>(out), elements_, background_);
    else if (size_ == 2)
      std::fill_n(static_cast<uint16_t*>(out), elements_, static_cast<uint16_t>(background_));
    else
      std::memset(out, static_cast<int>(background_), elements_);
  }

  std::vector<BoxCopy> copies_;  ///< by input
  size_t size_, elements_;
  bool filled_ = false;
  uint32_t background_ = 0;  ///< the bits of the value in the low bytes
};

/// Reshapes between two layouts neither of which is plain: through a plain copy, where equal
/// positions of two shapes meet.
class ReshapeKernel final : public Kernel {
 public:
  ReshapeKernel(const TensorDesc& in, const TensorDesc& out)
      : to_plain_(terms_of(in), terms_of(plain(in))),
        from_plain_(terms_of(plain(out)), terms_of(out)), size_(size_of(in.dtype)),
        bytes_(in.layout.is_plain() || out.layout.is_plain()
                   ? 0
                   : static_cast<size_t>(in.elements()) * size_),
        plain_in_(in.layout.is_plain()) {}
  size_t workspace_bytes() const override { return bytes_; }

  void run(const KernelArgs& args) override {
    if (plain_in_) return from_plain_.run(args.in[0], args.out[0], size_);
    void* const middle = bytes_ > 0 ? args.workspace : args.out[0];
    to_plain_.run(args.in[0], middle, size_);
    if (bytes_ > 0) from_plain_.run(middle, args.out[0], size_);
  }

 private:
  BoxCopy to_plain_, from_plain_;
  size_t size_, bytes_;
  bool plain_in_;
};

/// Returns ranges of a sample's dimensions as ranges of a batch.
Box with_batch(const std::vector<ops::SliceRange>& ranges) {
  Box box(1);
  box.insert(box.end(), ranges.begin(), ranges.end());
  return box;
}

using Made = std::unique_ptr<Kernel>;

Made make_reshape(const KernelRequest& r, const ops::Reshape&) {
  return std::make_unique<ReshapeKernel>(r.in[0], r.out[0]);
}

Made make_slice(const KernelRequest& r, const ops::Slice& op) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  return std::make_unique<CopyKernel>(
      y, std::vector{BoxCopy(terms_of_box(x, y.shape, with_batch(op.ranges())), terms_of(y))});
}

/// Copies x into a box of y, and fills the rest.
Made make_copy_into(const KernelRequest& r, const Box& box, float background) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  auto kernel = std::make_unique<CopyKernel>(
      y, std::vector{BoxCopy(terms_of(x), terms_of_box(y, x.shape, box))});
  kernel->set_background(y.dtype, background);
  return kernel;
}

Made make_slice_grad(const KernelRequest& r, const ops::SliceGrad& op) {
  return make_copy_into(r, with_batch(op.ranges()), 0);
}

Made make_move_box(const KernelRequest& r, const ops::MoveBox& op) {
  const TensorDesc &x = r.in[0], &y = r.out[0];
  Shape box = x.shape;
  for (int d = 1; d < box.rank(); ++d) box[d] = op.to()[static_cast<size_t>(d) - 1].count();
  auto kernel = std::make_unique<CopyKernel>(
      y, std::vector{BoxCopy(terms_of_box(x, box, with_batch(op.from())),
                             terms_of_box(y, box, with_batch(op.to())))});
  kernel->set_background(y.dtype, 0);
  return kernel;
}

Made make_pad(const KernelRequest& r, const ops::Pad& op) {
  Box box(1);
  for (const int64_t low : op.low()) box.push_back({.start = low});
  return make_copy_into(r, box, op.value());
}

Made make_concat(const KernelRequest& r, const ops::Concat& op) {
  const auto axis = static_cast<size_t>(op.axis());
  const TensorDesc& y = r.out[0];
  Box box(axis + 1);
  std::vector<BoxCopy> copies;
  for (const TensorDesc& in : r.in) {
    copies.emplace_back(terms_of(in), terms_of_box(y, in.shape, box));
    box[axis].start += in.shape[static_cast<int>(axis)];
  }
  return std::make_unique<CopyKernel>(y, std::move(copies));
}

template <class O>
auto copy_with(Made (*make)(const KernelRequest&, const O&)) {
  return [make](const KernelRequest& r, const O& op) {
    KernelCandidate c = candidate_for(r, "cpu:copy");
    c.refusal = refusal_of_layouts(r);
    if (c.refusal.empty()) c.make = [make, r, op] { return make(r, op); };
    return c;
  };
}

}  // namespace

void register_shape_kernels(KernelTable& table) {
  table.add<ops::Reshape>(copy_with(make_reshape));
  table.add<ops::Slice>(copy_with(make_slice));
  table.add<ops::SliceGrad>(copy_with(make_slice_grad));
  table.add<ops::MoveBox>(copy_with(make_move_box));
  table.add<ops::Pad>(copy_with(make_pad));
  table.add<ops::Concat>(copy_with(make_concat));
}

}  // namespace tutti::backend
