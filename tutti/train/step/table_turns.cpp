#include "tutti/train/step/table_turns.h"

#include <cstring>

#include "tutti/base/error.h"

namespace tutti {

TableTurns::TableTurns(const Network& network, const ReplicaMap& turns, Executor& executor)
    : network_(network), turns_(turns), executor_(executor) {
  if (network.shares_tables && turns.replicas() % turns.ranks() != 0)
    throw ConfigError(
        fmt::format("{} replicas on {} ranks: ranks that share tables go through a step together, "
                    "so each needs "
                    "as many replicas as the others",
                    turns.replicas(), turns.ranks()));
  for (const KeptTurns& kept : network.kept) {
    kept_.emplace_back(network.training.desc(kept.input).bytes());
    executor_.bind_input(kept.input, kept_.back().data());
  }
}

void TableTurns::take(int local_turn) {
  const Plan& plan = network_.training;
  for (size_t k = 0; k < kept_.size(); ++k)
    for (size_t rank = 0; rank < network_.kept[k].of_rank.size(); ++rank) {
      const Value v = network_.kept[k].of_rank[rank];
      const size_t bytes = plan.desc(v).bytes();
      const size_t turn = static_cast<size_t>(turns_.first()[rank] + local_turn);
      std::memcpy(kept_[k].data() + turn * bytes, executor_.address(plan.place(v)), bytes);
    }
}

size_t TableTurns::memory_bytes() const {
  size_t bytes = 0;
  for (const Buffer& buffer : kept_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace tutti
