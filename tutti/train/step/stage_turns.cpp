#include "tutti/train/step/stage_turns.h"

#include <algorithm>
#include <cstring>

namespace tutti {

StageTurns::StageTurns(const Network& network, Executor& executor, StepExchange& exchange,
                       int turns)
    : network_(network), executor_(executor), exchange_(exchange), turns_(turns),
      turning_(static_cast<size_t>(network.training.turning)),
      bands_(network.training.bands.size()), under_way_(static_cast<size_t>(executor.arenas())) {
  if (is_last()) return;
  for (UnderWay& turn : under_way_)
    for (const GraphInput& input : network.inputs)
      turn.inputs.emplace_back(network.training.desc(input.value).bytes());
}

/// Uses the arena of a turn from now on.
StageTurns::UnderWay& StageTurns::arena_of(int turn) {
  const int arena = turn % executor_.arenas();
  executor_.use_arena(arena);
  return under_way_[static_cast<size_t>(arena)];
}

void StageTurns::begin_step() {
  run_ = back_ = 0;
  for (int turn = 0; turn < std::min(turns_, executor_.arenas()); ++turn) {
    arena_of(turn);
    executor_.begin();
  }
}

void StageTurns::run(int turn, const StepInfo& info, const ReplicaState& replica,
                     std::span<void* const> batch) {
  UnderWay& here = arena_of(turn);
  here.info = info;
  here.replica = replica;
  for (size_t i = 0; i < batch.size(); ++i) {
    void* tensor = batch[i];
    if (!here.inputs.empty()) {
      Buffer& kept = here.inputs[i];
      std::memcpy(kept.data(), tensor, kept.bytes());
      tensor = kept.data();
    }
    executor_.bind_input(network_.inputs[i].value, tensor);
  }
  if (is_last()) here.replica.gradients = exchange_.begin(turn);
  executor_.bind(here.replica);
  executor_.run_bands(info, 0, turning_);
  ++run_;
}

void StageTurns::go_on() {
  if (run_ - back_ == executor_.arenas()) go_back(back_);
}

void StageTurns::go_back(int turn) {
  UnderWay& here = arena_of(turn);
  if (!is_last()) {
    here.replica.gradients = exchange_.begin(turn);
    executor_.bind(here.replica);
    for (size_t i = 0; i < here.inputs.size(); ++i)
      executor_.bind_input(network_.inputs[i].value, here.inputs[i].data());
    executor_.run_bands(here.info, turning_, bands_);
  }
  executor_.end();
  ++back_;
  if (turn + executor_.arenas() < turns_) executor_.begin();
}

void StageTurns::end_step() {
  while (back_ < turns_) go_back(back_);
}

}  // namespace tutti
