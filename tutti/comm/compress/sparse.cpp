// The form of topk: every rank sends the k largest magnitudes of its gradient to all others, which
// add them in the order of the ranks.
//
//   1  allgather of k values and indices a rank, 8 k (P-1) bytes sent; k = RATIO of the elements,
//      exactly, so that all sizes are known
//   2  the sum, zero where no rank sent anything
//
// The traffic grows with the number of ranks, and so does the density of the sum: between many
// ranks hitopk sends less.

#include "tutti/comm/compress/codec/error_feedback.h"
#include "tutti/comm/compress/codec/topk.h"
#include "tutti/comm/compress/forms.h"

namespace tutti::comm {
namespace {

class Sparse final : public CompressedReduction {
 public:
  Sparse(Communicator& communicator, const CompressedReductionSpec& spec)
      : CompressedReduction(communicator, spec), codec_(make_topk(spec.compression.ratio)) {
    const size_t bytes = codec_->encoded_bytes(count());
    const auto ranks = static_cast<size_t>(communicator.size());
    contributions_ = scratch();
    mine_ = contributions_.subspan(bytes * static_cast<size_t>(communicator.rank()), bytes);
    to_all_ = plan(communicator,
                   {.kind = Collective::allgather,
                    .element = Element::byte,
                    .count = bytes * ranks,
                    .input = mine_.data(),
                    .output = contributions_.data()},
                   "chosen elements to all");
  }
  ~Sparse() override { withdraw(); }

 private:
  Exchange* work(int stage) override {
    if (stage == 0) {
      count_loss(ErrorFeedback(piece(0)).encode(*codec_, parts(), mine_, step(), &shared()));
      return &to_all_;
    }
    sum_contributions(*codec_, contributions_, sum(), &shared());
    return nullptr;
  }

  std::unique_ptr<Codec> codec_;
  std::span<std::byte> contributions_;  // encodings, by rank
  std::span<std::byte> mine_;
  Exchange to_all_;
};

StateLayout sparse_state(const Communicator& communicator, const CompressedReductionSpec& spec) {
  StateLayout layout;
  layout.add(StatePiece::Kind::gradient, {0, spec.count}, communicator.size());
  return layout;
}

size_t sparse_scratch(const Communicator& communicator, const CompressedReductionSpec& spec) {
  return make_topk(spec.compression.ratio)->encoded_bytes(spec.count) *
         static_cast<size_t>(communicator.size());
}

}  // namespace

const Form sparse_form{make_form<Sparse>, sparse_state, sparse_scratch};

}  // namespace tutti::comm
