#include "tutti/train/step/table_micro_batches.h"

#include <cstring>

#include "tutti/base/error.h"

namespace tutti::train {

TableMicroBatches::TableMicroBatches(const Network& network,
                                     const exchange::ReplicaMap& micro_batches,
                                     plan::Executor& executor)
    : network_(network), micro_batches_(micro_batches), executor_(executor) {
  if (network.shares_tables && micro_batches.replicas() % micro_batches.ranks() != 0)
    throw ConfigError(
        fmt::format("{} replicas on {} ranks: ranks that share tables go through a step together, "
                    "so each needs as many replicas as the others",
                    micro_batches.replicas(), micro_batches.ranks()));
  for (const KeptMicroBatches& kept : network.kept) {
    kept_.emplace_back(network.training.desc(kept.input).bytes());
    executor_.bind_input(kept.input, kept_.back().data());
  }
}

void TableMicroBatches::take(int local_micro_batch) {
  const plan::Plan& plan = network_.training;
  for (size_t k = 0; k < kept_.size(); ++k)
    for (size_t rank = 0; rank < network_.kept[k].of_rank.size(); ++rank) {
      const graph::Value v = network_.kept[k].of_rank[rank];
      const size_t bytes = plan.desc(v).bytes();
      const size_t micro_batch =
          static_cast<size_t>(micro_batches_.first()[rank] + local_micro_batch);
      std::memcpy(kept_[k].data() + micro_batch * bytes, executor_.result(v), bytes);
    }
}

size_t TableMicroBatches::memory_bytes() const {
  size_t bytes = 0;
  for (const device::Buffer& buffer : kept_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace tutti::train
