// Reshape, Slice, SliceGrad, Pad, Concat: tables of runs of memory, made once.

#include <algorithm>
#include <cstring>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/shape_ops.h"

namespace tutti {
namespace {

/// `count` neighbouring elements of a sample of input `from` go to offset `to` of the output's
/// sample; from = -1: background.
struct Run {
  int32_t from, at, to, count;
};

/// Where the output's elements come from, both in memory order.
class Sources {
 public:
  explicit Sources(const KernelRequest& r)
      : r_(r), from_(static_cast<size_t>(sample_size(r.out[0])), -1), at_(from_.size()),
        out_(sample_offsets(r.out[0])) {}

  /// The samples of input i lie in the output as a box: index = start + step * index.
  void place(size_t i, const std::array<int64_t, Shape::kMaxRank>& start,
             const std::array<int64_t, Shape::kMaxRank>& step) {
    const Shape &inner = r_.in[i].shape, &outer = r_.out[0].shape;
    walk(inner, outer, start, step, sample_offsets(r_.in[i]),
         [&](int32_t in, size_t logical) { set(static_cast<size_t>(out_[logical]), i, in); });
  }
  /// The output is such a box of input 0.
  void take(const std::array<int64_t, Shape::kMaxRank>& start,
            const std::array<int64_t, Shape::kMaxRank>& step) {
    const std::vector<int32_t> in = sample_offsets(r_.in[0]);
    walk(r_.out[0].shape, r_.in[0].shape, start, step, out_,
         [&](int32_t out, size_t logical) { set(static_cast<size_t>(out), 0, in[logical]); });
  }
  /// Equal row-major positions.
  void copy() {
    const std::vector<int32_t> in = sample_offsets(r_.in[0]);
    for (size_t k = 0; k < in.size(); ++k) set(static_cast<size_t>(out_[k]), 0, in[k]);
  }

  std::vector<Run> runs() const {
    std::vector<Run> runs;
    for (size_t k = 0; k < from_.size(); ++k) {
      const bool continues = !runs.empty() && runs.back().from == from_[k] &&
                             (from_[k] < 0 || runs.back().at + runs.back().count == at_[k]);
      if (continues)
        ++runs.back().count;
      else
        runs.push_back({from_[k], at_[k], static_cast<int32_t>(k), 1});
    }
    return runs;
  }

 private:
  void set(size_t out, size_t input, int32_t at) {
    from_[out] = static_cast<int32_t>(input);
    at_[out] = at;
  }

  /// visit(offsets[k], row-major position in outer of inner's element k) for all elements of a
  /// sample.
  template <class Visit>
  static void walk(const Shape& inner, const Shape& outer,
                   const std::array<int64_t, Shape::kMaxRank>& start,
                   const std::array<int64_t, Shape::kMaxRank>& step,
                   const std::vector<int32_t>& offsets, Visit visit) {
    for (size_t k = 0; k < offsets.size(); ++k) {
      int64_t rest = static_cast<int64_t>(k), logical = 0, stride = 1;
      for (int d = inner.rank() - 1; d >= 1; --d) {
        logical +=
            (start[static_cast<size_t>(d)] + step[static_cast<size_t>(d)] * (rest % inner[d])) *
            stride;
        rest /= inner[d];
        stride *= outer[d];
      }
      visit(offsets[k], static_cast<size_t>(logical));
    }
  }

  const KernelRequest& r_;
  std::vector<int32_t> from_, at_, out_;
};

class CopyKernel final : public Kernel {
 public:
  CopyKernel(const KernelRequest& r, std::vector<Run> runs, float background)
      : runs_(std::move(runs)), samples_(r.out[0].shape[0]), size_(size_of(r.out[0].dtype)) {
    for (const TensorDesc& d : r.in)
      in_bytes_.push_back(static_cast<size_t>(sample_size(d)) * size_);
    out_bytes_ = static_cast<size_t>(sample_size(r.out[0])) * size_;
    switch (r.out[0].dtype) {
      case DType::f32: background_ = std::bit_cast<uint32_t>(background); break;
      case DType::bf16: background_ = bf16(background).bits; break;
      case DType::i32: background_ = static_cast<uint32_t>(static_cast<int32_t>(background)); break;
      case DType::u8: background_ = static_cast<uint8_t>(background); break;
    }
  }

  void run(const KernelArgs& args) override {
    for (size_t n = 0; n < static_cast<size_t>(samples_); ++n) {
      std::byte* const out = static_cast<std::byte*>(args.out[0]) + n * out_bytes_;
      for (const Run& run : runs_) {
        std::byte* const to = out + static_cast<size_t>(run.to) * size_;
        if (run.from < 0) {
          fill(to, run.count);
          continue;
        }
        const auto i = static_cast<size_t>(run.from);
        copy(to,
             static_cast<const std::byte*>(args.in[i]) + n * in_bytes_[i] +
                 static_cast<size_t>(run.at) * size_,
             run.count);
      }
    }
  }

 private:
  void copy(std::byte* to, const std::byte* from, int32_t count) const {
    if (count > 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * size_);
    } else if (size_ == 4) {  // strided slices: single elements, without a call
      std::memcpy(to, from, 4);
    } else {
      std::memcpy(to, from, size_ == 2 ? 2 : 1);
    }
  }
  void fill(std::byte* to, int32_t count) const {
    if (size_ == 4)
      std::fill_n(reinterpret_cast<uint32_t*>(to), count, background_);
    else if (size_ == 2)
      std::fill_n(reinterpret_cast<uint16_t*>(to), count, static_cast<uint16_t>(background_));
    else
      std::memset(to, static_cast<int>(background_), static_cast<size_t>(count));
  }

  std::vector<Run> runs_;
  int64_t samples_;
  size_t size_, out_bytes_ = 0;
  std::vector<size_t> in_bytes_;
  uint32_t background_ = 0;  ///< the bits of the value in the low bytes
};

}  // namespace

bool append_shape_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  const bool ours = dynamic_cast<const Reshape*>(r.op) || dynamic_cast<const Slice*>(r.op) ||
                    dynamic_cast<const SliceGrad*>(r.op) || dynamic_cast<const Pad*>(r.op) ||
                    dynamic_cast<const Concat*>(r.op);
  if (!ours) return false;
  KernelCandidate c = candidate_for(r, "cpu:copy");
  c.refusal = refusal_of_layouts(r);
  if (!c.refusal.empty()) {
    candidates.push_back(std::move(c));
    return true;
  }
  Sources sources(r);
  float background = 0;
  std::array<int64_t, Shape::kMaxRank> start{}, step;
  step.fill(1);
  const auto use_ranges = [&](const std::vector<SliceRange>& ranges) {
    for (size_t d = 0; d < ranges.size(); ++d) {
      start[d + 1] = ranges[d].start;
      step[d + 1] = ranges[d].step;
    }
  };
  if (dynamic_cast<const Reshape*>(r.op)) {
    sources.copy();
  } else if (const auto* slice = dynamic_cast<const Slice*>(r.op)) {
    use_ranges(slice->ranges());
    sources.take(start, step);
  } else if (const auto* grad = dynamic_cast<const SliceGrad*>(r.op)) {
    use_ranges(grad->ranges());
    sources.place(0, start, step);
  } else if (const auto* pad = dynamic_cast<const Pad*>(r.op)) {
    std::ranges::copy(pad->low(), start.begin() + 1);
    background = pad->value();
    sources.place(0, start, step);
  } else {
    const auto axis = static_cast<size_t>(dynamic_cast<const Concat&>(*r.op).axis());
    for (size_t i = 0; i < r.in.size(); start[axis] += r.in[i].shape[static_cast<int>(axis)], ++i)
      sources.place(i, start, step);
  }
  c.make = [r, runs = sources.runs(), background] {
    return std::make_unique<CopyKernel>(r, runs, background);
  };
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace tutti
