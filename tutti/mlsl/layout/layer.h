#pragma once
// The parts of a layer that one rank holds: samples, feature maps and kernels, and the exchanges
// that it needs to update these.
//
//   samples   minibatch / data parts, from data index * that
//   maps      all maps / model parts, from model index * that; but all of them, as partial sums,
//             where the operation adds over input maps
//   kernels   all kernels / model parts, from model index * that
// Every division must be exact, else ConfigError. Distributions must be grids
// (Distribution::parts()).

#include <cstddef>
#include <optional>

#include "tutti/comm/schedule/schedule.h"
#include "tutti/mlsl/layout/distribution.h"

namespace tutti::mlsl::layout {

/// Returns one rank's samples of a minibatch of `minibatch` samples.
comm::Slice local_samples(size_t minibatch, const Distribution& distribution, int rank);

/// A whole input or output of a layer. In memory it is [sample][map][map_size elements].
struct Activation {
  size_t maps = 0;
  size_t map_size = 1;        ///< elements of one feature map of one sample
  bool partial_sums = false;  ///< the output of an operation that adds over its input's maps:
                              ///< convolution, dense layer
};

/// One rank's share of an activation, contiguous as [samples.count][maps.count][map_size].
struct LocalActivation {
  comm::Slice samples;  ///< range within the minibatch
  comm::Slice maps;     ///< range within all maps
  size_t map_size = 1;  ///< elements
  bool needs_reduce =
      false;  ///< holds a partial sum of all maps: the activation is the sum over the model group
  size_t elements() const { return samples.count * maps.count * map_size; }
};
LocalActivation local_share(const Activation& activation, size_t minibatch,
                            const Distribution& distribution, int rank);

/// A collective derived from a layout. For reduce_scatter and allgather `count` is one rank's
/// share, for all_to_all the part for each single rank, for allreduce the whole vector, in
/// elements. The long vector that comm/run/collective.h counts is ActivationExchange::buffer or,
/// for parameters, padded * kernel_size.
struct GroupCollective {
  comm::Collective kind = comm::Collective::barrier;
  size_t count = 0;
  bool operator==(const GroupCollective&) const = default;
};

/// All parameters of a layer: kernels of `kernel_size` elements.
struct Parameters {
  size_t kernels = 0;
  size_t kernel_size = 1;
  bool distributed_update = false;  ///< each rank of a data group updates a share of the kernels,
                                    ///< and sends the increment to the others
};

/// One rank's share of the parameters.
///   plain update         the gradient of `local` is summed by allreduce; every rank owns, and
///                        updates, all of `local`
///   distributed update   owned = ceil(local / data parts); the gradient of `padded` kernels is
///                        summed by reduce_scatter, the increments of the owned ones are spread by
///                        allgather, which may work in place in a buffer of `padded` kernels
/// All collectives are over the data group, and sums. With one data part there are none.
struct LocalParameters {
  comm::Slice local;  ///< range within all kernels
  comm::Slice owned;  ///< the part of the local (padded) kernels that this rank updates. The last
                      ///< owners may hold padding
  size_t padded = 0;  ///< kernels in the buffers: owned.count * data parts, or local.count
  size_t kernel_size = 1;  ///< elements
  bool distributed_update = false;
  std::optional<GroupCollective>
      gradient;  ///< allreduce of local, or reduce_scatter that gives each rank its owned part
  std::optional<GroupCollective> increment;  ///< distributed update: allgather of owned
};
LocalParameters local_share(const Parameters& parameters, const Distribution& distribution,
                            int rank);

}  // namespace tutti::mlsl::layout
