#include "tutti/train/step/passes.h"

#include <algorithm>
#include <cstring>

namespace tutti::train {

Passes::Passes(const Network& network, plan::Executor& executor, StepExchange& exchange, int stages,
               int batches)
    : network_(network), executor_(executor), exchange_(exchange), whole_(stages == 1),
      batches_(batches), turning_(static_cast<size_t>(network.training.turning)),
      bands_(network.training.bands.size()), under_way_(static_cast<size_t>(executor.arenas())) {
  if (whole_ || is_last()) return;
  for (UnderWay& each : under_way_)
    for (const models::GraphInput& input : network.inputs)
      each.inputs.emplace_back(network.training.desc(input.value).bytes());
}

/// Switches to the arena of a micro-batch.
Passes::UnderWay& Passes::arena_of(int place) {
  const int arena = place % executor_.arenas();
  executor_.use_arena(arena);
  return under_way_[static_cast<size_t>(arena)];
}

void Passes::begin() {
  if (whole_) return;
  run_ = back_ = 0;
  for (int place = 0; place < std::min(batches_, executor_.arenas()); ++place) {
    arena_of(place);
    executor_.begin();
  }
}

void Passes::run_whole(int place, const backend::StepInfo& info, plan::ReplicaState replica,
                       std::span<void* const> batch) {
  for (size_t i = 0; i < batch.size(); ++i)
    executor_.bind_input(network_.inputs[i].value, batch[i]);
  replica.gradients = exchange_.begin(place);
  executor_.bind(replica);
  if (packed_ != replica.parameters) executor_.pack();
  executor_.run(info);
  packed_ = replica.parameters;
}

void Passes::run(int place, const backend::StepInfo& info, const plan::ReplicaState& replica,
                 std::span<void* const> batch) {
  if (whole_) return run_whole(place, info, replica, batch);
  UnderWay& here = arena_of(place);
  here.info = info;
  here.replica = replica;
  for (size_t i = 0; i < batch.size(); ++i) {
    void* tensor = batch[i];
    if (!here.inputs.empty()) {
      device::Buffer& kept = here.inputs[i];
      std::memcpy(kept.data(), tensor, kept.bytes());
      tensor = kept.data();
    }
    executor_.bind_input(network_.inputs[i].value, tensor);
  }
  if (is_last()) here.replica.gradients = exchange_.begin(place);
  executor_.bind(here.replica);
  executor_.run_bands(info, 0, turning_);
  ++run_;
}

void Passes::go_on() {
  if (!whole_ && run_ - back_ == executor_.arenas()) go_back(back_);
}

void Passes::go_back(int place) {
  UnderWay& here = arena_of(place);
  if (!is_last()) {
    here.replica.gradients = exchange_.begin(place);
    executor_.bind(here.replica);
    for (size_t i = 0; i < here.inputs.size(); ++i)
      executor_.bind_input(network_.inputs[i].value, here.inputs[i].data());
    executor_.run_bands(here.info, turning_, bands_);
  }
  executor_.end();
  ++back_;
  if (place + executor_.arenas() < batches_) executor_.begin();
}

void Passes::end() {
  while (!whole_ && back_ < batches_) go_back(back_);
}

}  // namespace tutti::train
