#include "tutti/mlsl/layout/layer.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

// Returns the part of `total` things in the rank's group, by its index among the groups of `kind`.
comm::Slice share(size_t total, const char* things, GroupKind kind,
                  const Distribution& distribution, int rank) {
  const auto parts = static_cast<size_t>(distribution.parts(kind));
  if (total % parts != 0) {
    throw ConfigError(fmt::format("{} {} cannot be cut into {} equal {} parts ({})", total, things,
                                  parts, kind == GroupKind::data ? "data" : "model",
                                  distribution.to_string()));
  }
  const size_t count = total / parts;
  return {count * static_cast<size_t>(distribution.index(kind, rank)), count};
}

}  // namespace

comm::Slice local_samples(size_t minibatch, const Distribution& distribution, int rank) {
  return share(minibatch, "samples of a minibatch", GroupKind::data, distribution, rank);
}

LocalActivation local_share(const Activation& activation, size_t minibatch,
                            const Distribution& distribution, int rank) {
  LocalActivation local{.samples = local_samples(minibatch, distribution, rank),
                        .maps = {0, activation.maps},
                        .map_size = activation.map_size};
  local.needs_reduce = activation.partial_sums && distribution.parts(GroupKind::model) > 1;
  if (!local.needs_reduce)
    local.maps = share(activation.maps, "feature maps", GroupKind::model, distribution, rank);
  return local;
}

LocalParameters local_share(const Parameters& parameters, const Distribution& distribution,
                            int rank) {
  LocalParameters own;
  own.local = share(parameters.kernels, "kernels", GroupKind::model, distribution, rank);
  own.kernel_size = parameters.kernel_size;
  own.distributed_update = parameters.distributed_update;
  own.owned = {0, own.local.count};
  own.padded = own.local.count;
  const auto data_parts = static_cast<size_t>(distribution.parts(GroupKind::data));
  if (data_parts == 1) return own;
  if (!parameters.distributed_update) {
    own.gradient = {comm::Collective::allreduce, own.local.count * own.kernel_size};
    return own;
  }
  const size_t count = (own.local.count + data_parts - 1) / data_parts;
  own.owned = {count * static_cast<size_t>(distribution.index(GroupKind::data, rank)), count};
  own.padded = count * data_parts;
  own.gradient = {comm::Collective::reduce_scatter, count * own.kernel_size};
  own.increment = {comm::Collective::allgather, count * own.kernel_size};
  return own;
}

}  // namespace tutti::mlsl::layout
