// GatherRows and AddRows: boxes of rows go from slabs to windows and back.

#include <algorithm>
#include <bit>
#include <set>

#include "tutti/backend/cpu/kernel/box_copy.h"
#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/ops/rank_rows.h"
#include "tutti/ops/rows.h"

namespace tutti::backend {
namespace {

/// Places of rows [first, first + count) of a sample in a tensor of such samples.
BoxCopy::Terms terms_of_rows(const TensorDesc& tensor, int dim, int64_t first, int64_t count) {
  TensorDesc one = tensor;
  one.shape[0] = 1;
  BoxCopy::Terms terms = terms_of(one);
  std::vector<int64_t>& rows = terms[static_cast<size_t>(dim)];
  rows = {rows.begin() + first, rows.begin() + first + count};
  return terms;
}

int64_t sample_bytes(const TensorDesc& d) {
  return sample_size(d) * static_cast<int64_t>(size_of(d.dtype));
}

/// Rows that a slab and a window share.
struct Shared {
  int64_t slab = 0, window = 0;
  int64_t slab_row = 0, window_row = 0, count = 0;
};

/// Shared parts of `rows` in `slabs`, window after window; in each by row.
std::vector<Shared> shared_rows(const std::vector<graph::Rows>& windows, graph::Rows rows,
                                int64_t slabs) {
  std::vector<Shared> shared;
  const int64_t height = rows.count() / slabs;
  for (size_t w = 0; w < windows.size(); ++w)
    for (int64_t s = 0; s < slabs; ++s) {
      const int64_t top = rows.first + s * height;
      const int64_t first = std::max(windows[w].first, top);
      const int64_t last = std::min(windows[w].last, top + height);
      if (first < last)
        shared.push_back(
            {s, static_cast<int64_t>(w), first - top, first - windows[w].first, last - first});
    }
  return shared;
}

class GatherRowsKernel final : public Kernel {
 public:
  GatherRowsKernel(const ops::GatherRows& op, const KernelRequest& r)
      : windows_(static_cast<int64_t>(op.cut().windows.size())), samples_(r.out[0].shape[0]),
        y_bytes_(sample_bytes(r.out[0])), element_(size_of(r.out[0].dtype)),
        runs_(op.cut().windows.size()), outside_(op.cut().windows.size()) {
    const TensorDesc& y = r.out[0];
    const int dim = op.cut().dim;
    std::vector<int64_t> filled(runs_.size());
    for (size_t i = 0; i < r.in.size(); ++i) {
      const int64_t slabs = i == 0 ? op.cut().slabs : 1;
      const graph::Rows rows =
          i == 0 ? graph::Rows{0, r.in[0].shape[dim] * slabs} : op.cut().others[i - 1];
      inputs_.push_back({slabs, sample_bytes(r.in[i])});
      for (const Shared& s : shared_rows(op.cut().windows, rows, slabs)) {
        const auto w = static_cast<size_t>(s.window);
        runs_[w].push_back({i, s.slab,
                            BoxCopy(terms_of_rows(r.in[i], dim, s.slab_row, s.count),
                                    terms_of_rows(y, dim, s.window_row, s.count))});
        filled[w] += s.count;
      }
    }
    for (size_t w = 0; w < runs_.size(); ++w) outside_[w] = filled[w] < y.shape[dim];
    if (y.dtype == DType::f32) fill_ = std::bit_cast<uint32_t>(op.fill());
    if (y.dtype == DType::bf16) fill_ = bf16(op.fill()).bits;
  }

  void run(const KernelArgs& args) override {
    for (int64_t i = 0; i < samples_; ++i) {
      const int64_t sample = (args.first_sample + i) / windows_;
      const auto w = static_cast<size_t>((args.first_sample + i) % windows_);
      std::byte* const to = static_cast<std::byte*>(args.out[0]) + i * y_bytes_;
      if (outside_[w]) fill(to);
      for (const auto& [input, slab, copy] : runs_[w])
        copy.run(static_cast<const std::byte*>(args.in[input]) +
                     (sample * inputs_[input].slabs + slab) * inputs_[input].bytes,
                 to, element_);
    }
  }

 private:
  void fill(std::byte* to) const {
    if (element_ == 4)
      std::fill_n(reinterpret_cast<uint32_t*>(to), y_bytes_ / 4, fill_);
    else if (element_ == 2)
      std::fill_n(reinterpret_cast<uint16_t*>(to), y_bytes_ / 2, static_cast<uint16_t>(fill_));
    else
      std::fill_n(to, y_bytes_, std::byte{0});
  }

  struct Run {
    size_t input;
    int64_t slab;
    BoxCopy copy;
  };
  struct Input {
    int64_t slabs, bytes;  // bytes of a slab
  };
  int64_t windows_, samples_, y_bytes_;
  size_t element_;
  std::vector<Input> inputs_;
  std::vector<std::vector<Run>> runs_;  // by window
  std::vector<bool> outside_;           // by window: whether it has rows that no input has
  uint32_t fill_ = 0;                   // the bits of the value in the low bytes
};

class AddRowsKernel final : public Kernel {
 public:
  AddRowsKernel(const ops::AddRows& op, const KernelRequest& r)
      : slabs_(op.sum().slabs), samples_(r.out[0].shape[0]), dx_bytes_(sample_bytes(r.out[0])),
        type_(r.out[0].dtype), segments_(static_cast<size_t>(op.sum().slabs)),
        gaps_(static_cast<size_t>(op.sum().slabs)) {
    const int64_t height = op.sum().rows.count() / slabs_;
    std::vector<std::vector<From>> by_slab(static_cast<size_t>(slabs_));
    for (size_t i = 0; i < r.in.size(); ++i) {
      inputs_.push_back({static_cast<int64_t>(op.sum().windows[i].size()), sample_bytes(r.in[i])});
      for (const Shared& s : shared_rows(op.sum().windows[i], op.sum().rows, slabs_))
        by_slab[static_cast<size_t>(s.slab)].push_back({i, s});
    }
    for (size_t slab = 0; slab < by_slab.size(); ++slab) {
      std::set<int64_t> cuts{0, height};  // the same windows hold all rows between two cuts
      for (const From& from : by_slab[slab])
        cuts.insert({from.shared.slab_row, from.shared.slab_row + from.shared.count});
      for (auto at = cuts.begin(); *at < height; ++at)
        add_segments(slab, by_slab[slab], {*at, *std::next(at)}, op.sum().dim, r);
    }
  }

  void run(const KernelArgs& args) override {
    for (int64_t i = 0; i < samples_; ++i) {
      const int64_t sample = (args.first_sample + i) / slabs_;
      const auto slab = static_cast<size_t>((args.first_sample + i) % slabs_);
      std::byte* const to = static_cast<std::byte*>(args.out[0]) + i * dx_bytes_;
      if (gaps_[slab]) std::fill_n(to, dx_bytes_, std::byte{0});
      for (const Segment& segment : segments_[slab]) {
        const Input& input = inputs_[segment.input];
        const std::byte* const from = static_cast<const std::byte*>(args.in[segment.input]) +
                                      (sample * input.windows + segment.window) * input.bytes;
        if (segment.first)
          segment.copy.run(from, to, size_of(type_));
        else
          segment.copy.add(from, to, type_);
      }
    }
  }

 private:
  struct From {
    size_t input;
    Shared shared;
  };
  struct Segment {
    size_t input;
    int64_t window;
    bool first;  // first of the windows that hold its rows
    BoxCopy copy;
  };
  struct Input {
    int64_t windows, bytes;  // bytes of a window
  };
  void add_segments(size_t slab, const std::vector<From>& all, graph::Rows rows, int dim,
                    const KernelRequest& r) {
    bool first = true;
    for (const auto& [input, s] : all) {
      if (s.slab_row > rows.first || s.slab_row + s.count < rows.last) continue;
      segments_[slab].push_back(
          {input, s.window, std::exchange(first, false),
           BoxCopy(terms_of_rows(r.in[input], dim, s.window_row + rows.first - s.slab_row,
                                 rows.count()),
                   terms_of_rows(r.out[0], dim, rows.first, rows.count()))});
    }
    gaps_[slab] = gaps_[slab] || first;
  }

  int64_t slabs_, samples_, dx_bytes_;
  DType type_;
  std::vector<Input> inputs_;
  std::vector<std::vector<Segment>> segments_;  // by slab
  std::vector<bool> gaps_;                      // by slab: whether no window holds some of its rows
};

template <class K, class O>
KernelCandidate rows_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:rows");
  c.refusal = refusal_of_layouts(r);
  c.make = [r, &op] { return std::make_unique<K>(op, r); };
  return c;
}

}  // namespace

void register_rows_kernels(KernelTable& table) {
  table.add<ops::GatherRows, ops::TakeRows>(rows_kernel<GatherRowsKernel, ops::GatherRows>);
  table.add<ops::AddRows>(rows_kernel<AddRowsKernel, ops::AddRows>);
}

}  // namespace tutti::backend
