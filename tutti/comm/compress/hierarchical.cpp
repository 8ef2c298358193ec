// The form of hitopk, HiTopKComm: dense where links are fast, sparse where they are slow. Shi et
// al., Towards scalable distributed training of deep learning on public cloud clusters, MLSys 2021
// (arXiv 2010.10458). L ranks a node, M nodes:
//
//   1  reduce_scatter inside the node, dense: every rank has the node's sum of its shard, S (L-1)/L
//      bytes sent
//   2  the shard's k/L largest magnitudes, with error feedback: allgather among the ranks of equal
//      place on their nodes, 8 k/L (M-1) bytes
//   3  their sum in the order of the nodes: allgather of the shards inside the node, S/L (L-1)
//      bytes
//
// A node selects elements, not a rank, and L streams travel between nodes at once.

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/error_feedback.h"
#include "tutti/comm/compress/codec/topk.h"
#include "tutti/comm/compress/forms.h"

namespace tutti::comm {
namespace {

std::vector<Slice> shards_of(const CompressedReductionSpec& spec) {
  return balanced_parts(spec.count, spec.groups->node().size());
}

// Floats of the sum of several parts; none for a single one.
size_t folded_floats(const CompressedReductionSpec& spec) {
  return spec.parts.size() > 1 ? spec.count : 0;
}

class Hierarchical final : public CompressedReduction {
 public:
  Hierarchical(Communicator& communicator, const CompressedReductionSpec& spec)
      : CompressedReduction(communicator, spec), codec_(make_topk(spec.compression.ratio)) {
    Communicator& node = spec.groups->node();
    Communicator& across = spec.groups->across();
    const std::vector<Slice> shards = shards_of(spec);
    const Slice mine = shards[static_cast<size_t>(node.rank())];
    shard_ = sum().subspan(mine.begin, mine.count);
    const size_t bytes = codec_->encoded_bytes(mine.count);
    const auto nodes = static_cast<size_t>(across.size());
    folded_ = {reinterpret_cast<float*>(scratch().data()), folded_floats(spec)};
    contributions_ = scratch().subspan(folded_.size_bytes());
    mine_ = contributions_.subspan(bytes * static_cast<size_t>(across.rank()), bytes);
    scatter_ = plan(node,
                    {.kind = Collective::reduce_scatter,
                     .count = count(),
                     .parts = shards,
                     .input = folded_.empty() ? parts()[0] : folded_.data(),
                     .output = shard_.data(),
                     .reproducible = true},
                    "shards of the node", spec.groups->node_ranks());
    across_ = plan(across,
                   {.kind = Collective::allgather,
                    .element = Element::byte,
                    .count = bytes * nodes,
                    .input = mine_.data(),
                    .output = contributions_.data()},
                   "chosen elements between nodes", spec.groups->across_ranks());
    gather_ = plan(node,
                   {.kind = Collective::allgather,
                    .count = count(),
                    .parts = shards,
                    .input = shard_.data(),
                    .output = sum().data()},
                   "sums inside the node", spec.groups->node_ranks());
  }
  ~Hierarchical() override { withdraw(); }

 private:
  Exchange* work(int stage) override {
    if (stage == 0) {
      for (size_t p = 0; p < parts().size() && !folded_.empty(); ++p) {
        const float* const part = parts()[p];
        if (p == 0)
          std::copy_n(part, count(), folded_.data());
        else
          for (size_t i = 0; i < count(); ++i) folded_[i] += part[i];
      }
      return &scatter_;
    }
    if (stage == 1) {
      count_loss(ErrorFeedback(piece(0)).encode(*codec_, std::span<const float>(shard_), mine_,
                                                step(), &shared()));
      return &across_;
    }
    if (stage == 2) {
      sum_contributions(*codec_, contributions_, shard_, &shared());
      return &gather_;
    }
    return nullptr;
  }

  std::unique_ptr<Codec> codec_;
  std::span<float> shard_;              // slice of the result
  std::span<float> folded_;             // the sum of several parts
  std::span<std::byte> contributions_;  // encodings of my shard, by node
  std::span<std::byte> mine_;
  Exchange scatter_, across_, gather_;
};

StateLayout hierarchical_state(const Communicator& communicator,
                               const CompressedReductionSpec& spec) {
  CHECK(spec.groups != nullptr, "reduction '{}': hitopk needs node groups", spec.name);
  CHECK(spec.groups->node().size() * spec.groups->across().size() == communicator.size(),
        "reduction '{}': node groups of {} x {} ranks, not of {}", spec.name,
        spec.groups->across().size(), spec.groups->node().size(), communicator.size());
  StateLayout layout;
  layout.add(StatePiece::Kind::sum,
             shards_of(spec)[static_cast<size_t>(spec.groups->node().rank())],
             spec.groups->across().size());
  return layout;
}

size_t hierarchical_scratch(const Communicator&, const CompressedReductionSpec& spec) {
  const Slice shard = shards_of(spec)[static_cast<size_t>(spec.groups->node().rank())];
  return folded_floats(spec) * sizeof(float) +
         make_topk(spec.compression.ratio)->encoded_bytes(shard.count) *
             static_cast<size_t>(spec.groups->across().size());
}

}  // namespace

const Form hierarchical_form{make_form<Hierarchical>, hierarchical_state, hierarchical_scratch};

}  // namespace tutti::comm
