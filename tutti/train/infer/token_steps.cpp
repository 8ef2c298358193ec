#include "tutti/train/infer/token_steps.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/train/infer/step_graph.h"

namespace tutti::train {

/// Keys and values of a layer: an input [rows, channels, window - 1], channels last, so that a
/// token's values are contiguous, and a step's output.
struct TokenSteps::Kept {
  graph::Value input, made;
  int64_t channels = 0;
  size_t element = 4;  // bytes per number
  std::vector<std::byte> memory{}, reordered{};
};

/// Values that the steps read from the source, copied for each of its sequences. Results [sources,
/// channels, S] are plain and become inputs with channels last; the tokens themselves count as one
/// channel.
struct TokenSteps::Given {
  graph::Value before, input;
  int64_t channels = 1, positions = 0;
  size_t element = 4;
  std::vector<std::byte> memory{};
};

struct TokenSteps::Front {
  plan::Plan plan;
  graph::Value source;
  std::vector<int32_t> bound{};
  std::unique_ptr<plan::Executor> executor{};
};

TokenSteps::TokenSteps() = default;
TokenSteps::~TokenSteps() = default;

namespace {

/// Returns the model for one position of the tokens; other fields keep their extents.
models::ModelSpec of_one_position(const models::ModelSpec& model, const std::string& tokens,
                                  int64_t rows) {
  models::ModelSpec spec = model;
  spec.mode = ops::Mode::eval;
  spec.batch = rows;
  if (spec.context == 0 && models::find_model(spec.name).takes_context)
    spec.context = spec.input[0];
  if (spec.input_field == tokens) spec.input = {1};
  for (models::ModelField& field : spec.inputs)
    if (field.name == tokens) field.sample = {1};
  for (models::ModelField& field : spec.targets) field.sample = {1};
  return spec;
}

graph::Value input_of(const models::ModelGraph& model, const std::string& field) {
  const auto found = std::ranges::find(model.inputs, field, &models::GraphInput::field);
  CHECK(found != model.inputs.end(), "the model reads no field '{}'", field);
  return found->value;
}

graph::Value final_of(const ops::Rewritten& rewritten, graph::Value v) {
  return rewritten.of[static_cast<size_t>(v.id)];
}

void check_layout(const TensorDesc& desc, bool last) {
  CHECK(last ? desc.layout == Layout::channels_last(3) : desc.layout.is_plain(),
        "what is kept lies as {}", desc.to_string());
}

/// Transposes [channels, positions] to [positions, channels].
template <class Word>
void transposed_copy(const std::byte* from, std::byte* to, size_t channels, size_t positions) {
  for (size_t t = 0; t < positions; ++t)
    for (size_t c = 0; c < channels; ++c)
      std::memcpy(to + (t * channels + c) * sizeof(Word), from + (c * positions + t) * sizeof(Word),
                  sizeof(Word));
}

}  // namespace

std::unique_ptr<TokenSteps> TokenSteps::of(const models::ModelSpec& model,
                                           const std::string& tokens, const TokenRows& rows,
                                           const backend::Backend& backend,
                                           plan::PlanOptions options,
                                           const plan::Variables& variables) {
  const Shape sample = models::input_named(model, tokens).sample;
  const int64_t window = sample.rank() == 1 ? sample[0] : 0;
  if (window < 2) return nullptr;
  const models::ModelGraph built =
      models::build_model(of_one_position(model, tokens, rows.count()));
  std::optional<StepGraph> stepped =
      step_graph(built, input_of(built, tokens), window, rows.count(), rows.sources);
  if (!stepped) return nullptr;
  const ops::Rewritten fused = ops::fuse_forward(stepped->graph);
  auto steps = std::unique_ptr<TokenSteps>(new TokenSteps());
  options.layout = "last";
  options.variables = &variables;
  steps->plan_ = plan::compile(fused.graph, backend, options);
  steps->rows_ = rows;
  steps->window_ = window;
  steps->token_ = final_of(fused, stepped->token);
  steps->position_ = final_of(fused, stepped->position);
  steps->seen_ = final_of(fused, stepped->seen);
  steps->logits_ = final_of(fused, stepped->logits);
  steps->vocabulary_ = stepped->graph.shape(stepped->logits)[1];
  for (const StepGraph::Layer& layer : stepped->layers) {
    const TensorDesc& kept = steps->plan_.desc(final_of(fused, layer.kept));
    check_layout(kept, true);
    check_layout(steps->plan_.desc(final_of(fused, layer.made)), false);
    steps->layers_.push_back({final_of(fused, layer.kept), final_of(fused, layer.made),
                              kept.shape[1], size_of(kept.dtype),
                              std::vector<std::byte>(kept.bytes())});
  }
  steps->executor_ = plan::make_executor(steps->plan_, backend);
  if (!stepped->source.valid()) return steps;
  const ops::Rewritten before = ops::fuse_forward(stepped->before);
  steps->front_ = std::make_unique<Front>(
      Front{plan::compile(before.graph, backend, options), final_of(before, stepped->source)});
  steps->front_->executor = plan::make_executor(steps->front_->plan, backend);
  steps->source_window_ = steps->front_->plan.desc(steps->front_->source).shape[1];
  for (const StepGraph::Crossing& crossing : stepped->crossings)
    steps->give(final_of(before, crossing.before), final_of(fused, crossing.input));
  return steps;
}

void TokenSteps::give(graph::Value before, graph::Value input) {
  const TensorDesc& read = plan_.desc(input);
  const bool tokens_alone = read.shape.rank() == 2;
  check_layout(read, !tokens_alone);
  check_layout(front_->plan.desc(before), false);
  given_.push_back({before, input, tokens_alone ? 1 : read.shape[1],
                    read.shape[read.shape.rank() - 1], size_of(read.dtype),
                    std::vector<std::byte>(read.bytes())});
}

void TokenSteps::bind(const plan::ReplicaState& model) {
  for (plan::Executor* executor : {executor_.get(), front_ ? front_->executor.get() : nullptr}) {
    if (!executor) continue;
    executor->bind(model);
    executor->pack();
    executor->settle(plan::Kept::statistics);  // others read the same weights
  }
}

void TokenSteps::begin(std::span<const int32_t> source) {
  CHECK(front_ && std::ssize(source) == rows_.sources * source_window_, "{} numbers of sources",
        source.size());
  begin();
  Front& front = *front_;
  front.bound.assign(source.begin(), source.end());
  front.executor->bind_input(front.source, front.bound.data());
  front.executor->run({});
  for (Given& given : given_) {
    const auto* made = given.before == front.source
                           ? reinterpret_cast<const std::byte*>(front.bound.data())
                           : static_cast<const std::byte*>(front.executor->result(given.before));
    const auto channels = static_cast<size_t>(given.channels),
               positions = static_cast<size_t>(given.positions),
               bytes = channels * positions * given.element,
               copies = static_cast<size_t>(rows_.copies);
    for (size_t row = 0; row < static_cast<size_t>(rows_.count()); ++row) {
      std::byte* const to = given.memory.data() + row * bytes;
      if (row % copies > 0)
        std::memcpy(to, to - bytes, bytes);
      else if (given.element == sizeof(uint32_t))
        transposed_copy<uint32_t>(made + row / copies * bytes, to, channels, positions);
      else
        transposed_copy<uint16_t>(made + row / copies * bytes, to, channels, positions);
    }
  }
}

std::span<const float> TokenSteps::step(std::span<const int32_t> tokens) {
  const auto rows = static_cast<size_t>(rows_.count()), window = static_cast<size_t>(window_);
  CHECK(count_ < window_ && tokens.size() == rows, "{} tokens for {} sequences, the {}th of {}",
        tokens.size(), rows, count_ + 1, window_);
  bound_tokens_.assign(tokens.begin(), tokens.end());
  bound_positions_.assign(rows, static_cast<int32_t>(count_));
  // The token itself comes after the stored ones.
  bound_seen_.assign(rows * window, -1);
  for (size_t row = 0; row < rows; ++row) {
    std::fill_n(bound_seen_.begin() + static_cast<std::ptrdiff_t>(row * window), count_, 0);
    bound_seen_[(row + 1) * window - 1] = 0;
  }
  executor_->bind_input(token_, bound_tokens_.data());
  executor_->bind_input(position_, bound_positions_.data());
  executor_->bind_input(seen_, bound_seen_.data());
  for (const Kept& layer : layers_) executor_->bind_input(layer.input, layer.memory.data());
  for (const Given& given : given_) executor_->bind_input(given.input, given.memory.data());
  executor_->run({});
  if (count_ + 1 < window_) take_made();
  ++count_;
  return {static_cast<const float*>(executor_->result(logits_)),
          rows * static_cast<size_t>(vocabulary_)};
}

/// Appends this step's keys and values to the stored ones of each sequence.
void TokenSteps::take_made() {
  for (Kept& layer : layers_) {
    const auto* made = static_cast<const std::byte*>(executor_->result(layer.made));
    const size_t bytes = static_cast<size_t>(layer.channels) * layer.element;
    for (int64_t row = 0; row < rows_.count(); ++row)
      std::memcpy(layer.memory.data() + static_cast<size_t>(row * (window_ - 1) + count_) * bytes,
                  made + static_cast<size_t>(row) * bytes, bytes);
  }
}

void TokenSteps::keep(std::span<const int32_t> from) {
  CHECK(std::ssize(from) == rows_.count());
  for (Kept& layer : layers_) {
    layer.reordered.resize(layer.memory.size());
    const size_t bytes = layer.memory.size() / from.size();
    for (size_t row = 0; row < from.size(); ++row)
      std::memcpy(layer.reordered.data() + row * bytes,
                  layer.memory.data() + static_cast<size_t>(from[row]) * bytes, bytes);
    std::swap(layer.memory, layer.reordered);
  }
}

}  // namespace tutti::train
