// The form of bf16, fp16, int8 and onebit: each rank owns a slice of the bucket (balanced_parts).
//
//   1  every rank encodes slice q of its gradient for rank q: all_to_all of encodings, S' (P-1)/P
//      bytes sent
//   2  the owner decodes and adds them in the order of the ranks, and encodes the sum: allgather of
//      encodings, S' (P-1)/P bytes sent
//   3  every rank decodes all slices
//
// S' = encoded bytes of the bucket. Both encodings have their own error feedback, for the gradient
// and for the sum, as in 1-bit Adam (Tang et al. 2021). An allreduce of 16-bit elements would round
// the sum without feedback, and its partial sums travel as f32 in most algorithms.

#include "tutti/comm/compress/codec/codec.h"
#include "tutti/comm/compress/codec/error_feedback.h"
#include "tutti/comm/compress/forms.h"

namespace tutti::comm {
namespace {

enum TwoPhasePiece : size_t { kTwoPhaseGradient, kTwoPhaseSum };

class TwoPhase final : public CompressedReduction {
 public:
  TwoPhase(Communicator& communicator, const CompressedReductionSpec& spec)
      : CompressedReduction(communicator, spec),
        codec_(make_codec(name_of(spec.compression.method))),
        slices_(balanced_parts(count(), communicator.size())) {
    size_t at = 0;
    for (const Slice& slice : slices_) {
      encodings_.push_back({at, codec_->encoded_bytes(slice.count)});
      at = encodings_.back().end();
      std::vector<const float*>& parts_here = parts_of_slice_.emplace_back();
      for (const float* part : parts()) parts_here.push_back(part + slice.begin);
    }
    mine_ = static_cast<size_t>(communicator.rank());
    whole_.resize(at);
    const size_t own = encodings_[mine_].count;
    contributions_.resize(own * slices_.size());
    std::vector<Slice> receives;
    for (size_t p = 0; p < slices_.size(); ++p) receives.push_back({p * own, own});
    to_owners_ = plan(communicator,
                      {.kind = Collective::all_to_all,
                       .element = Element::byte,
                       .count = at,
                       .sends = encodings_,
                       .receives = receives,
                       .input = whole_.data(),
                       .output = contributions_.data()},
                      "slices to their owners");
    to_all_ = plan(communicator,
                   {.kind = Collective::allgather,
                    .element = Element::byte,
                    .count = at,
                    .parts = encodings_,
                    .input = encoding(mine_).data(),
                    .output = whole_.data()},
                   "sums to all");
  }
  ~TwoPhase() override { withdraw(); }

 private:
  std::span<std::byte> encoding(size_t q) {
    return std::span(whole_).subspan(encodings_[q].begin, encodings_[q].count);
  }
  std::span<float> slice_of(std::span<float> vector, size_t q) const {
    return vector.subspan(slices_[q].begin, slices_[q].count);
  }

  Exchange* work(int stage) override {
    if (stage == 0) {
      Loss loss;
      for (size_t q = 0; q < slices_.size(); ++q)
        loss += ErrorFeedback(slice_of(piece(kTwoPhaseGradient), q))
                    .encode(*codec_, parts_of_slice_[q], encoding(q), step(), &shared());
      count_loss(loss);
      return &to_owners_;
    }
    if (stage == 1) {
      const std::span<float> total = slice_of(sum(), mine_);
      sum_contributions(*codec_, contributions_, total, &shared());
      ErrorFeedback(piece(kTwoPhaseSum))
          .encode(*codec_, std::span<const float>(total), encoding(mine_), step(), &shared());
      return &to_all_;
    }
    for (size_t q = 0; q < slices_.size(); ++q)
      sum_contributions(*codec_, encoding(q), slice_of(sum(), q), &shared());
    return nullptr;
  }

  std::unique_ptr<Codec> codec_;
  std::vector<Slice> slices_;     // in floats, by rank
  std::vector<Slice> encodings_;  // in bytes of whole_, by rank
  size_t mine_ = 0;
  std::vector<std::vector<const float*>> parts_of_slice_;
  std::vector<std::byte> whole_;  // encodings of all slices: of my gradient, later of the sum
  std::vector<std::byte> contributions_;  // encodings of my slice, by rank
  Exchange to_owners_, to_all_;
};

StateLayout two_phase_state(const Communicator& communicator, const CompressedReductionSpec& spec) {
  StateLayout layout;
  layout.add(StatePiece::Kind::gradient, {0, spec.count}, communicator.size());
  layout.add(
      StatePiece::Kind::sum,
      balanced_parts(spec.count, communicator.size())[static_cast<size_t>(communicator.rank())], 1);
  return layout;
}

}  // namespace

const Form two_phase_form{make_form<TwoPhase>, two_phase_state, no_scratch};

}  // namespace tutti::comm
