#include "tutti/mlsl/layout/activation_exchange.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

constexpr GroupKind kData = GroupKind::data;
constexpr GroupKind kModel = GroupKind::model;

bool same_samples(const Distribution& a, const Distribution& b) {
  if (a.parts(kData) != b.parts(kData)) return false;
  for (int rank = 0; rank < a.world(); ++rank)
    if (a.index(kData, rank) != b.index(kData, rank)) return false;
  return true;
}

// See the header. Equal parts are not enough: with several replicas, or with colours, a rank may
// have other samples on the two sides.
bool refines(const Distribution& fine, const Distribution& coarse) {
  const int model = coarse.parts(kModel);
  if (fine.parts(kModel) != 1 || fine.parts(kData) != coarse.parts(kData) * model) return false;
  for (int rank = 0; rank < fine.world(); ++rank)
    if (fine.index(kData, rank) != coarse.index(kData, rank) * model + coarse.index(kModel, rank))
      return false;
  return true;
}

ExchangeCase find_case(const ActivationEnd& producer, const ActivationEnd& consumer) {
  const Distribution& out = producer.distribution;
  const Distribution& in = consumer.distribution;
  const bool needs_reduce = producer.activation.partial_sums && out.parts(kModel) > 1;
  if (out == in) return needs_reduce ? ExchangeCase::sum_to_maps : ExchangeCase::none;
  if (out.world() == in.world()) {
    if (needs_reduce && in.parts(kModel) == 1 && same_samples(out, in))
      return ExchangeCase::sum_to_all;
    if (refines(in, out))
      return needs_reduce ? ExchangeCase::sum_to_samples : ExchangeCase::to_samples;
    if (!needs_reduce && refines(out, in)) return ExchangeCase::to_maps;
  }
  throw CommError(
      fmt::format("no exchange leads from an output on {}{} to an input on {}: give both layers "
                  "the same distribution, or one of "
                  "them a single model part and as many data parts as the other has data parts "
                  "times model parts",
                  out.to_string(), needs_reduce ? " (partial sums)" : "", in.to_string()));
}

CommBlock all_of(const LocalActivation& local, size_t buffer_offset) {
  return {.samples = {0, local.samples.count},
          .maps = {0, local.maps.count},
          .map_size = local.map_size,
          .sample_stride = local.maps.count * local.map_size,
          .buffer_offset = buffer_offset};
}

// Cuts a local activation into one block for each rank of the group, along its samples or its maps.
std::vector<CommBlock> cut(const LocalActivation& local, comm::Slice CommBlock::*along,
                           size_t parts) {
  const CommBlock whole = all_of(local, 0);
  const size_t extent = (whole.*along).count;
  if (extent % parts != 0)
    throw ConfigError(fmt::format(
        "{} feature maps cannot be cut into {} equal parts for the layer they are connected to",
        extent, parts));
  std::vector<CommBlock> blocks(parts, whole);
  for (size_t p = 0; p < parts; ++p) {
    blocks[p].*along = {p * (extent / parts), extent / parts};
    blocks[p].buffer_offset = p * (local.elements() / parts);
  }
  return blocks;
}

}  // namespace

ActivationExchange derive_exchange(const ActivationEnd& producer, const ActivationEnd& consumer,
                                   size_t minibatch, int rank) {
  CHECK(!consumer.activation.partial_sums, "an input is not a partial sum");
  const Activation& from = producer.activation;
  const Activation& to = consumer.activation;
  if (from.maps * from.map_size != to.maps * to.map_size) {
    throw ConfigError(
        fmt::format("an output of {} maps of {} elements does not fit an input of {} maps of {}",
                    from.maps, from.map_size, to.maps, to.map_size));
  }

  ActivationExchange exchange;
  exchange.kind = find_case(producer, consumer);
  const LocalActivation out =
      local_share(producer.activation, minibatch, producer.distribution, rank);
  const LocalActivation in =
      local_share(consumer.activation, minibatch, consumer.distribution, rank);
  if (exchange.kind == ExchangeCase::none) return exchange;

  exchange.consumers_group = exchange.kind == ExchangeCase::to_maps;
  const Distribution& side =
      exchange.consumers_group ? consumer.distribution : producer.distribution;
  exchange.group = side.group(kModel, rank);
  exchange.index = side.index(kModel, rank);
  exchange.buffer = out.elements();

  const size_t parts = exchange.group.size();
  const size_t share = exchange.buffer / parts;
  const auto sum_to = [&](comm::Slice CommBlock::*along) {
    const std::vector<CommBlock> blocks = cut(out, along, parts);
    exchange.forward = {{comm::Collective::reduce_scatter, share}, blocks, {all_of(in, 0)}};
    exchange.backward = {{comm::Collective::allgather, share},
                         {all_of(in, share * static_cast<size_t>(exchange.index))},
                         blocks};
  };
  const auto trade_tiles = [&](comm::Slice CommBlock::*producer_along,
                               comm::Slice CommBlock::*consumer_along) {
    const std::vector<CommBlock> sent = cut(out, producer_along, parts);
    const std::vector<CommBlock> received = cut(in, consumer_along, parts);
    exchange.forward = {{comm::Collective::all_to_all, share}, sent, received};
    exchange.backward = {{comm::Collective::all_to_all, share}, received, sent};
  };
  switch (exchange.kind) {
    case ExchangeCase::none: break;
    case ExchangeCase::sum_to_maps: sum_to(&CommBlock::maps); break;
    case ExchangeCase::sum_to_all:
      exchange.forward = {
          {comm::Collective::allreduce, exchange.buffer}, {all_of(out, 0)}, {all_of(in, 0)}};
      break;
    case ExchangeCase::sum_to_samples: sum_to(&CommBlock::samples); break;
    case ExchangeCase::to_maps: trade_tiles(&CommBlock::maps, &CommBlock::samples); break;
    case ExchangeCase::to_samples: trade_tiles(&CommBlock::samples, &CommBlock::maps); break;
  }
  return exchange;
}

}  // namespace tutti::mlsl::layout
