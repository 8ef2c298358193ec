// Lookups in tables, and the update of the rows that were looked up. Compiled without contraction:
// a row gets the same bits in a vector and in its remainder.

#include <algorithm>
#include <memory>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/embedding.h"

namespace tutti {
namespace {

class EmbeddingBagKernel final : public Kernel {
 public:
  EmbeddingBagKernel(const KernelRequest& r, const BagColumns& columns)
      : samples_(r.out[0].shape[0]), width_(r.in[0].shape[1]), fields_(r.in[1].shape[1]),
        columns_(columns) {}

  void run(const KernelArgs& args) override {
    const auto* const table = static_cast<const float*>(args.in[0]);
    const auto* rows = static_cast<const int32_t*>(args.in[1]) + columns_.first;
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, rows += fields_, y += width_) {
      std::copy_n(table + rows[0] * width_, width_, y);
      for (int64_t c = 1; c < columns_.count; ++c) {
        const float* const row = table + rows[c] * width_;
#pragma omp simd
        for (int64_t i = 0; i < width_; ++i) y[i] += row[i];
      }
    }
  }

 private:
  int64_t samples_, width_, fields_;
  BagColumns columns_;
};

/// Each part owns a run of the table's rows. It sorts the places in the batch that name them, so
/// that a row's terms are neighbours, in the order of the batch.
class TableUpdateKernel final : public Kernel {
 public:
  TableUpdateKernel(const KernelRequest& r, const BagColumns& columns)
      : rows_(r.in[2].shape[0]), width_(r.in[2].shape[1]), samples_(r.in[4].shape[0]),
        fields_(r.in[4].shape[1]), columns_(columns) {}

  size_t workspace_bytes() const override {
    return places_bytes() + static_cast<size_t>(width_) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const float rate =
        *static_cast<const float*>(args.in[0]) * *static_cast<const float*>(args.in[1]);
    auto* const table = static_cast<float*>(args.in[2]);
    const auto* const dy = static_cast<const float*>(args.in[3]);
    auto* const places = static_cast<uint64_t*>(args.workspace);
    auto* const sum =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + places_bytes());
    const uint64_t* const end = sorted_places(static_cast<const int32_t*>(args.in[4]), places,
                                              share(rows_, args.part, args.parts));
    for (const uint64_t* at = places; at < end;) {
      const uint64_t row = *at >> 32;
      std::copy_n(gradient(dy, *at), width_, sum);
      for (++at; at < end && *at >> 32 == row; ++at) {
        const float* const more = gradient(dy, *at);
#pragma omp simd
        for (int64_t i = 0; i < width_; ++i) sum[i] += more[i];
      }
      float* const w = table + static_cast<int64_t>(row) * width_;
#pragma omp simd
      for (int64_t i = 0; i < width_; ++i) w[i] -= rate * sum[i];
    }
  }

 private:
  size_t places_bytes() const {
    return workspace_part(static_cast<size_t>(samples_ * columns_.count) * sizeof(uint64_t));
  }

  /// The row in the upper half, in the lower one the number of the place in the batch.
  uint64_t* sorted_places(const int32_t* rows, uint64_t* places,
                          std::pair<int64_t, int64_t> own) const {
    uint64_t* end = places;
    uint64_t number = 0;
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t c = columns_.first; c < columns_.first + columns_.count; ++c, ++number)
        if (const int32_t row = rows[n * fields_ + c]; own.first <= row && row < own.second)
          *end++ = static_cast<uint64_t>(row) << 32 | number;
    std::sort(places, end);
    return end;
  }

  const float* gradient(const float* dy, uint64_t place) const {
    return dy + static_cast<int64_t>(place & 0xFFFFFFFFu) / columns_.count * width_;
  }

  int64_t rows_, width_, samples_, fields_;
  BagColumns columns_;
};

template <class K>
void add_embedding(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                   const BagColumns& columns) {
  KernelCandidate c = candidate_for(r, "cpu:embedding");
  for (const auto* side : {&c.in, &c.out})
    for (const TensorDesc& d : *side)
      if (!d.layout.is_plain()) c.refusal = fmt::format("{} is not plain", d.to_string());
  c.make = [r, columns] { return std::make_unique<K>(r, columns); };
  candidates.push_back(std::move(c));
}

}  // namespace

bool append_embedding_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  if (const auto* const op = dynamic_cast<const EmbeddingBag*>(r.op))
    add_embedding<EmbeddingBagKernel>(r, candidates, op->columns());
  else if (const auto* const op = dynamic_cast<const TableUpdate*>(r.op))
    add_embedding<TableUpdateKernel>(r, candidates, op->columns());
  else
    return false;
  return true;
}

}  // namespace tutti
