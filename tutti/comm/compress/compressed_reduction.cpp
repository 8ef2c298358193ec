#include "tutti/comm/compress/compressed_reduction.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/comm/compress/forms.h"

namespace tutti::comm {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const Form& form_of(const CompressedReductionSpec& spec) {
  switch (spec.compression.method) {
    case CompressionMethod::bf16:
    case CompressionMethod::fp16:
    case CompressionMethod::int8:
    case CompressionMethod::onebit: return two_phase_form;
    case CompressionMethod::topk: return sparse_form;
    case CompressionMethod::hitopk: return hierarchical_form;
    case CompressionMethod::powersgd: return low_rank_form;
    case CompressionMethod::none: break;
  }
  throw ConfigError(
      fmt::format("reduction '{}': compression none is a dense reduction", spec.name));
}

}  // namespace

CompressedReduction::CompressedReduction(Communicator& communicator,
                                         const CompressedReductionSpec& spec)
    : StagedOperation(communicator, fmt::format("reduction '{}'", spec.name)), bucket_(spec.name),
      method_(to_string(spec.compression)), count_(spec.count), parts_(spec.parts),
      result_(spec.result), layout_(state_layout(communicator, spec)), state_(spec.state) {
  CHECK(!parts_.empty() && (result_ != nullptr || count_ == 0), "{} has {} parts and {} result",
        name(), parts_.size(), result_ == nullptr ? "no" : "a");
  CHECK(state_.size() == layout_.floats, "{}: a state of {} floats, {} needs {}", name(),
        state_.size(), method_, layout_.floats);
  const size_t needed = scratch_bytes(communicator, spec);
  if (spec.scratch.empty()) own_scratch_.resize(needed);
  scratch_ = spec.scratch.empty() ? std::span(own_scratch_) : spec.scratch;
  CHECK(scratch_.size() >= needed, "{}: {} bytes of scratch memory, {} needs {}", name(),
        scratch_.size(), method_, needed);
  scratch_ = scratch_.first(needed);
}

StagedOperation::Exchange CompressedReduction::plan(Communicator& group, CollectiveSpec collective,
                                                    const char* what, std::vector<int> members) {
  collective.name = fmt::format("{}, {}: {}", bucket_, method_, what);
  Exchange exchange{group.plan(collective), std::move(members)};
  bytes_received_ += exchange.operation->bytes_received();
  return exchange;
}

std::span<float> CompressedReduction::piece(size_t index) const {
  const StatePiece& piece = layout_.pieces[index];
  return state_.subspan(piece.at, piece.covers.count);
}

void CompressedReduction::count_loss(const Loss& loss) {
  if (std::isfinite(loss.ratio()))
    report_.loss += loss;
  else
    ++report_.not_finite;
}

StagedOperation::Exchange* CompressedReduction::next(int stage) {
  const double began = steady_seconds();
  if (stage == 0)
    starter_ = std::this_thread::get_id();
  else
    report_.exchange_seconds += began - exchange_began_;
  Exchange* const exchange = work(stage);
  exchange_began_ = steady_seconds();
  report_.codec_seconds += exchange_began_ - began;
  if (std::this_thread::get_id() == starter_) report_.caller_seconds += exchange_began_ - began;
  if (exchange != nullptr) return exchange;
  const auto ranks = static_cast<size_t>(communicator().size());
  ++report_.runs;
  report_.bytes += bytes_received_;
  report_.dense_bytes += 2 * (ranks - 1) * count_ * sizeof(float) / ranks;
  return nullptr;
}

std::string CompressedReduction::description() const {
  return fmt::format("{} by {}", name(), method_);
}

StateLayout state_layout(const Communicator& communicator, const CompressedReductionSpec& spec) {
  return form_of(spec).state(communicator, spec);
}

size_t scratch_bytes(const Communicator& communicator, const CompressedReductionSpec& spec) {
  return form_of(spec).scratch(communicator, spec);
}

std::unique_ptr<CompressedReduction> plan_compressed(Communicator& communicator,
                                                     const CompressedReductionSpec& spec) {
  return form_of(spec).make(communicator, spec);
}

}  // namespace tutti::comm
