#pragma once
// The exchange between two connected layers, derived from their distributions. Forward, the
// producer's output becomes the consumer's input; backward, the gradient of that input becomes the
// gradient of that output. A rank packs its local activation into a buffer, takes part in one
// collective over its model group, and unpacks.
//
//   case              output        distributions                       forward, then backward
//   0 none            finished      the same                            nothing
//   1 sum_to_maps     partial sums  the same                            reduce_scatter, by maps;
//                                                                       allgather
//   2 sum_to_all      partial sums  input: 1 model part, samples as     allreduce; nothing
//                                   the output's
//   3 sum_to_samples  partial sums  the input's refines the output's    reduce_scatter, by samples;
//                                                                       allgather
//   4 to_maps         finished      the output's refines the input's    all_to_all; all_to_all
//   5 to_samples      finished      the input's refines the output's    all_to_all; all_to_all
//
// "A refines B": A has one model part, and cuts the samples of each model group of B among the
// group's ranks, in order: data parts of A = data parts of B * model parts of B, and on every rank
// data index in A = data index in B * model parts of B + model index in B. The group is the model
// group of the side with several model parts. All sums are sums; tiles of all_to_all have one size.

#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/mlsl/layout/comm_block.h"
#include "tutti/mlsl/layout/distribution.h"
#include "tutti/mlsl/layout/layer.h"

namespace tutti::mlsl::layout {

enum class ExchangeCase : uint8_t {
  none,
  sum_to_maps,
  sum_to_all,
  sum_to_samples,
  to_maps,
  to_samples
};

/// One side of a connection.
struct ActivationEnd {
  const Distribution& distribution;  ///< read during the call
  Activation activation;
};

/// Forward the producer's side packs and the consumer's side unpacks; backward it is the reverse. A
/// block list with several entries has one for each rank of the group, in order. The input of an
/// allgather is packed where it lies in the result: at index * count.
struct ActivationTransfer {
  GroupCollective collective;
  std::vector<CommBlock> pack;  ///< from the sending side's local activation into its buffer
  std::vector<CommBlock>
      unpack;  ///< from the collective's result, into the receiving side's local activation
};

struct ActivationExchange {
  ExchangeCase kind = ExchangeCase::none;
  bool consumers_group =
      false;               ///< the group is the consumer's model group; otherwise the producer's
  std::vector<int> group;  ///< ranks, in the order of their index; empty if nothing is exchanged
  int index = 0;           ///< this rank's index in the group
  size_t buffer = 0;       ///< elements that a buffer needs on either side, for both directions
  /// Empty: both sides have the same local elements in the same order, and there is nothing to do.
  std::optional<ActivationTransfer> forward, backward;
};

/// Returns the exchange of `rank` between `producer` (an output) and `consumer` (an input) for a
/// minibatch of `minibatch` samples. The two may cut a sample's elements into maps differently:
/// maps * map_size must be equal. Throws CommError, naming both distributions, for a pair that no
/// case covers; ConfigError for sizes that differ or cannot be cut. Either is thrown on all ranks
/// or on none.
ActivationExchange derive_exchange(const ActivationEnd& producer, const ActivationEnd& consumer,
                                   size_t minibatch, int rank);

}  // namespace tutti::mlsl::layout
