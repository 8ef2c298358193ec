// Lookups in tables, and the update of the rows that were looked up. Compiled without contraction:
// a row gets the same bits in a vector and in its remainder.

#include <algorithm>
#include <cmath>
#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::backend {
namespace {

/// Returns how many rows a bag names.
int64_t named(const int32_t* bag, int64_t count) {
  return std::count_if(bag, bag + count, [](int32_t row) { return row >= 0; });
}

class EmbeddingBagKernel final : public Kernel {
 public:
  EmbeddingBagKernel(const KernelRequest& r, const ops::EmbeddingBag& op)
      : samples_(r.out[0].shape[0]), own_rows_(r.in[0].shape[0]), width_(r.in[0].shape[1]),
        fields_(r.in[1].shape[1]), bag_(op.bag()) {}

  void run(const KernelArgs& args) override {
    const auto* const table = static_cast<const float*>(args.in[0]);
    const auto* bag = static_cast<const int32_t*>(args.in[1]) + bag_.first;
    const auto* weights = bag_.weighted ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, bag += fields_, y += width_) {
      if (bag_.weighted) {
        add_weighted(table, bag, weights + n * bag_.count, y);
      } else {
        add_rows(table, bag, y);
      }
      if (bag_.mean) scale(1 / static_cast<float>(std::max<int64_t>(named(bag, bag_.count), 1)), y);
    }
  }

 private:
  /// Returns null if the number names no row, or another rank's row.
  const float* row_at(const float* table, int32_t number) const {
    const int64_t row = number - bag_.first_row;
    return row >= 0 && row < own_rows_ ? table + row * width_ : nullptr;
  }

  void add_rows(const float* table, const int32_t* bag, float* y) const {
    bool first = true;
    for (int64_t c = 0; c < bag_.count; ++c) {
      const float* const row = row_at(table, bag[c]);
      if (!row) continue;
      if (std::exchange(first, false)) {
        std::copy_n(row, width_, y);
        continue;
      }
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) y[i] += row[i];
    }
    if (first) std::fill_n(y, width_, 0.0f);
  }

  void add_weighted(const float* table, const int32_t* bag, const float* weights, float* y) const {
    std::fill_n(y, width_, 0.0f);
    for (int64_t c = 0; c < bag_.count; ++c) {
      const float* const row = row_at(table, bag[c]);
      if (!row) continue;
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) y[i] += weights[c] * row[i];
    }
  }

  void scale(float factor, float* y) const {
#pragma omp simd
    for (int64_t i = 0; i < width_; ++i) y[i] *= factor;
  }

  int64_t samples_, own_rows_, width_, fields_;
  ops::Bag bag_;
};

/// Each part adds to its own range of the table's rows. It sorts the batch's places that name them,
/// so that a row's terms are neighbours, in the order of the batch.
class TableUpdateKernel final : public Kernel {
 public:
  TableUpdateKernel(const KernelRequest& r, const ops::TableUpdate& op)
      : bag_(op.bag()), rule_(op.rule()), dy_(op.has_state() ? 4 : 3), own_rows_(r.in[2].shape[0]),
        width_(r.in[2].shape[1]), samples_(r.in[dy_ + 1].shape[0]),
        fields_(r.in[dy_ + 1].shape[1]) {}

  size_t workspace_bytes() const override {
    return places_bytes() + static_cast<size_t>(width_) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const float lr = *static_cast<const float*>(args.in[0]);
    const float scale = *static_cast<const float*>(args.in[1]);
    auto* const table = static_cast<float*>(args.in[2]);
    auto* const sums = static_cast<float*>(args.in[3]);  // used by a rule that keeps them
    const Batch batch{static_cast<const float*>(args.in[dy_]),
                      static_cast<const int32_t*>(args.in[dy_ + 1]) + bag_.first,
                      bag_.weighted ? static_cast<const float*>(args.in[dy_ + 2]) : nullptr};
    auto* const places = static_cast<uint64_t*>(args.workspace);
    auto* const g =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + places_bytes());
    const uint64_t* const end =
        sorted_places(batch.bags, places, share(own_rows_, args.thread, args.threads));
    for (const uint64_t* at = places; at < end;) {
      const uint64_t row = *at >> 32;
      std::fill_n(g, width_, -0.0f);  // adds nothing to any number, not even to -0
      for (; at < end && *at >> 32 == row; ++at) add(batch, *at, g);
      const auto r = static_cast<int64_t>(row);
      descend(lr, scale, g, table + r * width_, sums + r * rule_.state_width(width_));
    }
  }

 private:
  struct Batch {
    const float* dy;
    const int32_t* bags;
    const float* weights;  // null: none
  };

  size_t places_bytes() const {
    return workspace_part(static_cast<size_t>(samples_ * bag_.count) * sizeof(uint64_t));
  }

  /// Returns numbers with the row in the upper half and the place in the batch in the lower half.
  uint64_t* sorted_places(const int32_t* bags, uint64_t* places,
                          std::pair<int64_t, int64_t> own) const {
    uint64_t* end = places;
    uint64_t number = 0;
    for (int64_t m = 0; m < samples_; ++m)
      for (int64_t c = 0; c < bag_.count; ++c, ++number)
        if (const int64_t row = bags[m * fields_ + c] - bag_.first_row;
            own.first <= row && row < own.second)
          *end++ = static_cast<uint64_t>(row) << 32 | number;
    std::sort(places, end);
    return end;
  }

  void add(const Batch& batch, uint64_t place, float* g) const {
    const auto number = static_cast<int64_t>(place & 0xFFFFFFFFu);
    const int64_t m = number / bag_.count;
    const float* const dy = batch.dy + m * width_;
    float factor = 1;
    if (batch.weights) factor = batch.weights[number];
    if (bag_.mean) factor *= 1 / static_cast<float>(named(batch.bags + m * fields_, bag_.count));
#pragma omp simd
    for (int64_t i = 0; i < width_; ++i) g[i] += factor * dy[i];
  }

  void descend(float lr, float scale, const float* g, float* w, float* sum) const {
    if (rule_.kind == ops::TableRule::Kind::sgd) {
      const float rate = lr * scale;
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) w[i] -= rate * g[i];
    } else if (rule_.kind == ops::TableRule::Kind::adagrad) {
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) {
        const float x = scale * g[i];
        sum[i] += x * x;
        w[i] -= lr * x / (std::sqrt(sum[i]) + rule_.epsilon);
      }
    } else {
      float squares = 0;
      for (int64_t i = 0; i < width_; ++i) squares += (scale * g[i]) * (scale * g[i]);
      *sum += squares / static_cast<float>(width_);
      const float rate = lr * scale / (std::sqrt(*sum) + rule_.epsilon);
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) w[i] -= rate * g[i];
    }
  }

  ops::Bag bag_;
  ops::TableRule rule_;
  size_t dy_;  // its index among the inputs
  int64_t own_rows_, width_, samples_, fields_;
};

template <class K, class O>
KernelCandidate embedding_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:embedding");
  for (const auto* side : {&c.in, &c.out})
    for (const TensorDesc& d : *side)
      if (!d.layout.is_plain()) c.refusal = fmt::format("{} is not plain", d.to_string());
  c.make = [r, op] { return std::make_unique<K>(r, op); };
  return c;
}

}  // namespace

void register_embedding_kernels(KernelTable& table) {
  table.add<ops::EmbeddingBag>(embedding_kernel<EmbeddingBagKernel, ops::EmbeddingBag>);
  table.add<ops::TableUpdate>(embedding_kernel<TableUpdateKernel, ops::TableUpdate>);
}

}  // namespace tutti::backend
