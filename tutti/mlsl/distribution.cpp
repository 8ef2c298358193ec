#include "tutti/mlsl/distribution.h"

namespace tutti::mlsl {
namespace {

std::vector<comm::Slice> in_bytes(const Distribution::Blocks& blocks, int ranks, size_t element) {
  std::vector<comm::Slice> all;
  for (size_t p = 0; p < static_cast<size_t>(ranks); ++p)
    all.push_back({blocks.offsets[p] * element, blocks.counts[p] * element});
  return all;
}

}  // namespace

Distribution::Distribution(RequestTable& requests, std::shared_ptr<Group> world,
                           layout::Distribution layout)
    : requests_(requests), layout_(std::move(layout)), rank_(world->index()) {
  for (const layout::GroupKind kind :
       {layout::GroupKind::data, layout::GroupKind::model, layout::GroupKind::global})
    caches_[static_cast<size_t>(kind)] = std::make_shared<PlanCache>(make_group(world, kind));
}

std::shared_ptr<Group> Distribution::make_group(const std::shared_ptr<Group>& world,
                                                layout::GroupKind kind) const {
  // All ranks decide the same: this holds for all of them or for none.
  if (static_cast<int>(layout_.group(kind, rank_).size()) == layout_.world()) return world;
  Job& job = world->job();
  return std::make_shared<Group>(job, job.world().split(layout_.colour(kind, rank_), rank_));
}

api::CommReq* Distribution::broadcast(void* buffer, size_t count, api::DataType data, size_t root,
                                      api::GroupType type) {
  return start({.kind = comm::Collective::broadcast,
                .count = count,
                .data = data,
                .group = type,
                .root = root},
               buffer, buffer);
}

api::CommReq* Distribution::start(const Collective& collective, const void* send, void* receive) {
  PlanCache& cache = this->cache(group_kind_of(collective.group));
  demand(collective.root < static_cast<size_t>(cache.group().size()),
         "{}: root {} in a group of {}", comm::name_of(collective.kind), collective.root,
         cache.group().size());
  comm::CollectiveSpec spec;
  spec.kind = collective.kind;
  spec.element = element_of(collective.data);
  spec.op = reduce_op_of(collective.reduction);
  spec.count = collective.count;
  spec.root = static_cast<int>(collective.root);
  size_t begin = 0;
  for (const size_t count : collective.parts) {
    spec.parts.push_back({begin, count});
    begin += count;
  }
  return requests_.add(cache.start(spec, {send, receive}));
}

api::CommReq* Distribution::start_equal(Collective collective, const void* send, void* receive) {
  collective.count *= process_count(collective.group);
  return start(collective, send, receive);
}

api::CommReq* Distribution::allgather_parts(const void* send, size_t count, void* receive,
                                            const size_t* counts, api::DataType data,
                                            api::GroupType type) {
  demand(counts != nullptr, "AllGatherv: recvCounts is needed");
  Collective collective{.kind = comm::Collective::allgather,
                        .data = data,
                        .group = type,
                        .parts = {counts, counts + process_count(type)}};
  for (const size_t part : collective.parts) collective.count += part;
  demand(collective.parts[process_index(type)] == count,
         "AllGatherv: this rank sends {} elements, and recvCounts says {}", count,
         collective.parts[process_index(type)]);
  return start(collective, send, receive);
}

api::CommReq* Distribution::all_to_all_blocks(const void* send, const Blocks& sends, void* receive,
                                              const Blocks& receives, api::DataType data,
                                              api::GroupType type) {
  PlanCache& cache = this->cache(group_kind_of(type));
  demand(sends.counts != nullptr && sends.offsets != nullptr && receives.counts != nullptr &&
             receives.offsets != nullptr,
         "AlltoAllv: counts and offsets are needed of both buffers");
  const size_t element = comm::size_of(element_of(data));
  comm::BlockExchangeSpec spec;
  spec.sends = in_bytes(sends, cache.group().size(), element);
  spec.receives = in_bytes(receives, cache.group().size(), element);
  spec.input = static_cast<const std::byte*>(send);
  spec.output = static_cast<std::byte*>(receive);
  return requests_.add(std::make_unique<Request>(
      cache.shared_from_this(), std::make_unique<Unplanned>(cache.group(), std::move(spec))));
}

}  // namespace tutti::mlsl
