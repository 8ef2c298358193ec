// The form of powersgd (codec/powersgd.h): the bucket's matrices as products of two thin ones, both
// summed by an allreduce.
//
//   1  M += gradient; P = M Q: allreduce of all P of the bucket, and of all dense floats
//   2  orthonormal P, the same bits everywhere; q = M^T P of this rank; Q = sum of all q: allreduce
//   3  result = P Q^T; M becomes the residual M - P q^T
//
// The residual uses the rank's own q, as in the paper's algorithm 2, and not the mean Q: both leave
// the same sum over ranks, but the second one also collects the difference between the rank's
// gradient and the mean, which may grow for ever.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/powersgd.h"
#include "tutti/comm/compress/forms.h"

namespace tutti::comm {
namespace {

enum LowRankPiece : size_t { kLowRankGradient, kLowRankBasis };

// A matrix with its places in the messages.
struct Factored {
  MatrixBlock block;
  PowerSgd code;
  Slice p, q;
  Loss loss = {};  // loss in this run
};

struct Factoring {
  std::vector<Factored> matrices;
  std::vector<Slice> dense;  // slices of the bucket
  size_t p_count = 0, q_count = 0, dense_count = 0;
};

MatrixBlock nearly_square(size_t count) {
  const auto rows = static_cast<size_t>(std::sqrt(static_cast<double>(count)));
  return {0, rows, rows == 0 ? 0 : count / rows};
}

Factoring factoring_of(const CompressedReductionSpec& spec) {
  const size_t count = spec.count;
  Factoring all;
  size_t at = 0;
  const auto dense_up_to = [&](size_t end) {
    if (end > at) all.dense.push_back({at, end - at});
    all.dense_count += end - at;
  };
  for (const MatrixBlock& block :
       spec.matrices.empty() ? std::vector{nearly_square(count)} : spec.matrices) {
    if (block.begin < at || block.end() > count)
      throw ConfigError(
          fmt::format("reduction '{}': the matrix at [{}, {}) overlaps another or the end at {}",
                      spec.name, block.begin, block.end(), count));
    const size_t rank =
        std::min({static_cast<size_t>(spec.compression.rank), block.rows, block.cols});
    if ((block.rows + block.cols) * rank >= block.rows * block.cols) continue;
    PowerSgd code({block.rows, block.cols}, static_cast<int>(rank), all.matrices.size());
    const Slice p{all.p_count, code.p_count()}, q{all.q_count, code.q_count()};
    all.p_count += p.count;
    all.q_count += q.count;
    all.matrices.push_back({block, code, p, q});
    dense_up_to(block.begin);
    at = block.end();
  }
  dense_up_to(count);
  return all;
}

class LowRank final : public CompressedReduction {
 public:
  LowRank(Communicator& communicator, const CompressedReductionSpec& spec)
      : CompressedReduction(communicator, spec), f_(factoring_of(spec)),
        first_(f_.p_count + f_.dense_count), own_q_(f_.q_count) {
    // Zeros are the state of a new training; a checkpoint never holds zeros.
    if (std::ranges::all_of(piece(kLowRankBasis), [](float x) { return x == 0; }))
      for (const Factored& m : f_.matrices) m.code.begin(q_of(m));
    sum_p_ = plan(communicator,
                  {.kind = Collective::allreduce,
                   .count = first_.size(),
                   .output = first_.data(),
                   .reproducible = true},
                  "P");
    sum_q_ = plan(communicator,
                  {.kind = Collective::allreduce,
                   .count = f_.q_count,
                   .input = own_q_.data(),
                   .output = piece(kLowRankBasis).data(),
                   .reproducible = true},
                  "Q");
  }
  ~LowRank() override { withdraw(); }

 private:
  std::span<float> m_of(const Factored& m) const {
    return piece(kLowRankGradient).subspan(m.block.begin, m.block.rows * m.block.cols);
  }
  std::span<float> p_of(const Factored& m) {
    return std::span(first_).subspan(m.p.begin, m.p.count);
  }
  std::span<float> own_q_of(const Factored& m) {
    return std::span(own_q_).subspan(m.q.begin, m.q.count);
  }
  std::span<float> q_of(const Factored& m) const {
    return piece(kLowRankBasis).subspan(m.q.begin, m.q.count);
  }

  Exchange* work(int stage) override {
    if (stage == 0) return project(), &sum_p_;
    if (stage == 1) {
      of_all([this](const Factored& m) {
        m.code.orthogonalize(p_of(m));
        m.code.back_project(m_of(m), p_of(m), own_q_of(m));
      });
      return &sum_q_;
    }
    finish();
    return nullptr;
  }

  // Matrices do not overlap, so each thread takes one.
  template <class Work>
  void of_all(Work work) {
    shared().run(f_.matrices.size(), [&](size_t i) { work(f_.matrices[i]); });
  }

  void project() {
    const std::span<float> acc = piece(kLowRankGradient);
    for (const float* part : parts())
      for (size_t i = 0; i < acc.size(); ++i) acc[i] += part[i];
    of_all([this](const Factored& m) { m.code.project(m_of(m), q_of(m), p_of(m)); });
    size_t at = f_.p_count;
    for (const Slice& slice : f_.dense) {
      const std::span<float> rest = acc.subspan(slice.begin, slice.count);
      std::ranges::copy(rest, first_.begin() + static_cast<std::ptrdiff_t>(at));
      std::ranges::fill(rest, 0.0f);
      at += slice.count;
    }
  }

  void finish() {
    of_all([this](Factored& m) {
      m.code.decode(p_of(m), q_of(m), sum().subspan(m.block.begin, m.block.rows * m.block.cols));
      m.loss = m.code.finish(p_of(m), own_q_of(m), m_of(m));
    });
    Loss loss;
    for (const Factored& m : f_.matrices) loss += m.loss;
    size_t at = f_.p_count;
    for (const Slice& slice : f_.dense) {
      std::copy_n(first_.begin() + static_cast<std::ptrdiff_t>(at), slice.count,
                  sum().begin() + static_cast<std::ptrdiff_t>(slice.begin));
      at += slice.count;
    }
    count_loss(loss);
  }

  Factoring f_;
  std::vector<float> first_;  // all P, then the dense floats
  std::vector<float> own_q_;  // the own Q before the sum, which is the basis of the next step
  Exchange sum_p_, sum_q_;
};

StateLayout low_rank_state(const Communicator& communicator, const CompressedReductionSpec& spec) {
  const Factoring factoring = factoring_of(spec);
  StateLayout layout;
  layout.add(StatePiece::Kind::gradient, {0, spec.count}, communicator.size());
  layout.add(StatePiece::Kind::basis, {0, factoring.q_count}, communicator.size());
  return layout;
}

}  // namespace

const Form low_rank_form{make_form<LowRank>, low_rank_state, no_scratch};

}  // namespace tutti::comm
