#include "tutti/comm/shm/shared_reduction.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

// Two lines each, because processors fetch lines in pairs. Lives in zeroed shared memory, so plain integers seen through atomic_ref.
struct SharedReduction::Flags {
  alignas(128) uint64_t arrived;
  alignas(128) uint64_t finished;
};

namespace {
uint64_t load(uint64_t& flag) { return std::atomic_ref(flag).load(std::memory_order_acquire); }
void publish(uint64_t& flag, uint64_t value) { std::atomic_ref(flag).store(value, std::memory_order_release); }
}  // namespace

SharedReduction::SharedReduction(Communicator& communicator, const ReductionSpec& spec)
    : Reduction(communicator, spec), tree_(spec.replicas, all_parts(spec.replicas, spec.first)) {
  CHECK(spec.window->shared());
  static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
  const int ranks = communicator.size();

  // Where each rank's parts lie inside its own window; fewer than 64 by the logarithmic bound.
  std::array<uint64_t, 64> offsets{};
  for (size_t i = 0; i < spec.parts.size(); ++i)
    offsets.at(i) = static_cast<uint64_t>(reinterpret_cast<const std::byte*>(spec.parts[i]) - spec.window->data());
  const auto all = communicator.allgather_value(offsets);
  const size_t begin = static_cast<size_t>(slice(communicator.rank()).lo);
  for (int p = 0; p < ranks; ++p) {
    const Range owned{spec.first[static_cast<size_t>(p)], spec.first[static_cast<size_t>(p) + 1]};
    const size_t parts = maximal_subtrees(spec.replicas, owned).size();
    for (size_t i = 0; i < parts; ++i)
      slices_.push_back(reinterpret_cast<const float*>(spec.window->peer(p) + all[static_cast<size_t>(p)][i]) + begin);
    if (p != communicator.rank()) foreign_parts_ += parts;
  }

  const size_t flag_bytes = sizeof(Flags) * static_cast<size_t>(ranks);
  node_ = communicator.allocate(communicator.rank() == 0 ? flag_bytes + spec.count * sizeof(float) : 0);
  CHECK(node_->shared());
  shared_result_ = reinterpret_cast<float*>(node_->peer(0) + flag_bytes);
}

SharedReduction::Flags& SharedReduction::flags(int rank) const { return reinterpret_cast<Flags*>(node_->peer(0))[rank]; }

const float* SharedReduction::result() const { return spec().result != nullptr ? spec().result : shared_result_; }

size_t SharedReduction::bytes_moved() const {
  return foreign_parts_ * static_cast<size_t>(slice(communicator().rank()).size()) * sizeof(float);
}

void SharedReduction::begin() {
  reduced_ = false;
  arrived_ = finished_ = 0;
  publish(flags(communicator().rank()).arrived, sequence());
}

bool SharedReduction::advance() {
  const int ranks = communicator().size();
  if (!reduced_) {
    while (arrived_ < ranks && load(flags(arrived_).arrived) >= sequence()) ++arrived_;
    if (arrived_ < ranks) return false;
    const Range mine = slice(communicator().rank());
    tree_.evaluate(slices_, shared_result_ + mine.lo, static_cast<size_t>(mine.size()));
    publish(flags(communicator().rank()).finished, sequence());
    reduced_ = true;
  }
  while (finished_ < ranks && load(flags(finished_).finished) >= sequence()) ++finished_;
  if (finished_ < ranks) return false;
  // Only for callers that insist on a place of their own.
  if (spec().result != nullptr) std::memcpy(spec().result, shared_result_, spec().count * sizeof(float));
  return true;
}

Pending SharedReduction::describe() const {
  Pending what{.operation = fmt::format("reduction '{}'", name()), .sequence = sequence(), .arrived = {}, .missing = {}};
  for (int p = 0; p < communicator().size(); ++p) {
    uint64_t& flag = reduced_ ? flags(p).finished : flags(p).arrived;
    (load(flag) >= sequence() ? what.arrived : what.missing).push_back(p);
  }
  if (reduced_) what.operation += " (all gradients are there; waiting for slices of the sum)";
  return what;
}

}  // namespace tutti::comm
