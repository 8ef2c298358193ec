// GatherRows and AddRows: boxes of rows go from slabs to windows and back.

#include <algorithm>
#include <bit>
#include <set>

#include "tutti/backend/cpu/box_copy.h"
#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/rows.h"

namespace tutti {
namespace {

/// Where rows [first, first + count) of a sample lie in a tensor of such samples.
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

/// All of one cut, window after window; in each by row.
std::vector<Shared> shared_rows(const RowCut& cut, int64_t slab_rows) {
  std::vector<Shared> shared;
  for (size_t w = 0; w < cut.windows.size(); ++w)
    for (int64_t s = 0; s < cut.slabs; ++s) {
      const int64_t first = std::max(cut.windows[w].first, s * slab_rows);
      const int64_t last = std::min(cut.windows[w].last, (s + 1) * slab_rows);
      if (first < last)
        shared.push_back({s, static_cast<int64_t>(w), first - s * slab_rows,
                          first - cut.windows[w].first, last - first});
    }
  return shared;
}

class GatherRowsKernel final : public Kernel {
 public:
  GatherRowsKernel(const GatherRows& op, const TensorDesc& x, const TensorDesc& y)
      : windows_(static_cast<int64_t>(op.cut().windows.size())), slabs_(op.cut().slabs),
        samples_(y.shape[0]), x_bytes_(sample_bytes(x)), y_bytes_(sample_bytes(y)),
        element_(size_of(y.dtype)), runs_(op.cut().windows.size()),
        outside_(op.cut().windows.size()) {
    const int dim = op.cut().dim;
    const int64_t rows = x.shape[dim] * slabs_;
    for (const Shared& s : shared_rows(op.cut(), x.shape[dim]))
      runs_[static_cast<size_t>(s.window)].push_back(
          {s.slab, BoxCopy(terms_of_rows(x, dim, s.slab_row, s.count),
                           terms_of_rows(y, dim, s.window_row, s.count))});
    for (size_t w = 0; w < runs_.size(); ++w)
      outside_[w] = op.cut().windows[w].first < 0 || op.cut().windows[w].last > rows;
    if (y.dtype == DType::f32) fill_ = std::bit_cast<uint32_t>(op.fill());
    if (y.dtype == DType::bf16) fill_ = bf16(op.fill()).bits;
  }

  void run(const KernelArgs& args) override {
    for (int64_t i = 0; i < samples_; ++i) {
      const int64_t sample = (args.first_sample + i) / windows_;
      const auto w = static_cast<size_t>((args.first_sample + i) % windows_);
      std::byte* const to = static_cast<std::byte*>(args.out[0]) + i * y_bytes_;
      if (outside_[w]) fill(to);
      for (const auto& [slab, copy] : runs_[w])
        copy.run(static_cast<const std::byte*>(args.in[0]) + (sample * slabs_ + slab) * x_bytes_,
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
    int64_t slab;
    BoxCopy copy;
  };
  int64_t windows_, slabs_, samples_, x_bytes_, y_bytes_;
  size_t element_;
  std::vector<std::vector<Run>> runs_;  // by window
  std::vector<bool> outside_;           // by window: does it reach beyond the sample?
  uint32_t fill_ = 0;                   // the bits of the value in the low bytes
};

class AddRowsKernel final : public Kernel {
 public:
  AddRowsKernel(const AddRows& op, const TensorDesc& dy, const TensorDesc& dx)
      : windows_(static_cast<int64_t>(op.cut().windows.size())), slabs_(op.cut().slabs),
        samples_(dx.shape[0]), dy_bytes_(sample_bytes(dy)), dx_bytes_(sample_bytes(dx)),
        type_(dx.dtype), segments_(static_cast<size_t>(op.cut().slabs)),
        gaps_(static_cast<size_t>(op.cut().slabs)) {
    const int dim = op.cut().dim;
    const int64_t rows = dx.shape[dim];
    std::vector<std::vector<Shared>> by_slab(static_cast<size_t>(slabs_));
    for (const Shared& s : shared_rows(op.cut(), rows))
      by_slab[static_cast<size_t>(s.slab)].push_back(s);
    for (size_t slab = 0; slab < by_slab.size(); ++slab) {
      std::set<int64_t> cuts{0, rows};  // between them the same windows hold all rows
      for (const Shared& s : by_slab[slab])
        cuts.insert(s.slab_row), cuts.insert(s.slab_row + s.count);
      for (auto at = cuts.begin(); *at < rows; ++at)
        add_segments(slab, by_slab[slab], *at, *std::next(at), dim, dy, dx);
    }
  }

  void run(const KernelArgs& args) override {
    for (int64_t i = 0; i < samples_; ++i) {
      const int64_t sample = (args.first_sample + i) / slabs_;
      const auto slab = static_cast<size_t>((args.first_sample + i) % slabs_);
      std::byte* const to = static_cast<std::byte*>(args.out[0]) + i * dx_bytes_;
      if (gaps_[slab]) std::fill_n(to, dx_bytes_, std::byte{0});
      for (const Segment& segment : segments_[slab]) {
        const std::byte* const from =
            static_cast<const std::byte*>(args.in[0]) + (sample * windows_ + segment.window) * dy_bytes_;
        if (segment.first)
          segment.copy.run(from, to, size_of(type_));
        else
          segment.copy.add(from, to, type_);
      }
    }
  }

 private:
  struct Segment {
    int64_t window;
    bool first;  // of those that hold its rows
    BoxCopy copy;
  };
  void add_segments(size_t slab, const std::vector<Shared>& shared, int64_t begin, int64_t end,
                    int dim, const TensorDesc& dy, const TensorDesc& dx) {
    bool first = true;
    for (const Shared& s : shared) {
      if (s.slab_row > begin || s.slab_row + s.count < end) continue;
      segments_[slab].push_back(
          {s.window, std::exchange(first, false),
           BoxCopy(terms_of_rows(dy, dim, s.window_row + begin - s.slab_row, end - begin),
                   terms_of_rows(dx, dim, begin, end - begin))});
    }
    gaps_[slab] = gaps_[slab] || first;
  }

  int64_t windows_, slabs_, samples_, dy_bytes_, dx_bytes_;
  DType type_;
  std::vector<std::vector<Segment>> segments_;  // by slab
  std::vector<bool> gaps_;                      // by slab: rows that no window holds
};

}  // namespace

bool append_rows_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  const auto* gather = dynamic_cast<const GatherRows*>(r.op);
  const auto* sum = dynamic_cast<const AddRows*>(r.op);
  if (!gather && !sum) return false;
  KernelCandidate c = candidate_for(r, "cpu:rows");
  c.refusal = refusal_of_layouts(r);
  if (gather)
    c.make = [r, gather] { return std::make_unique<GatherRowsKernel>(*gather, r.in[0], r.out[0]); };
  else
    c.make = [r, sum] { return std::make_unique<AddRowsKernel>(*sum, r.in[0], r.out[0]); };
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace tutti
