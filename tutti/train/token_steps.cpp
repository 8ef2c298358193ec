#include "tutti/train/token_steps.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fuse.h"
#include "tutti/train/step_graph.h"

namespace tutti {

/// Keys and values of a layer: an input [rows, channels, window - 1], and what a step makes.
struct TokenSteps::Kept {
  Value input, made;
  int64_t channels = 0;
  size_t element = 4;  // bytes of a number
  std::vector<std::byte> memory{}, reordered{};
};

/// What the steps read of the source: of each the bytes for one source, copied for its sequences.
struct TokenSteps::Given {
  Value before, input;
  size_t bytes = 0;
  std::vector<std::byte> memory{};
};

struct TokenSteps::Front {
  Plan plan;
  Value source;
  std::vector<int32_t> bound{};
  std::unique_ptr<Executor> executor{};
};

TokenSteps::TokenSteps() = default;
TokenSteps::~TokenSteps() = default;

namespace {

/// Of one position of the tokens; other fields keep their extents.
ModelSpec of_one_position(const ModelSpec& model, const std::string& tokens, int64_t rows) {
  ModelSpec spec = model;
  spec.mode = Mode::eval;
  spec.batch = rows;
  if (spec.context == 0 && find_model(spec.name).takes_context) spec.context = spec.input[0];
  if (spec.input_field == tokens) spec.input = {1};
  for (ModelField& field : spec.inputs)
    if (field.name == tokens) field.sample = {1};
  for (ModelField& field : spec.targets) field.sample = {1};
  return spec;
}

Value input_of(const ModelGraph& model, const std::string& field) {
  const auto found = std::ranges::find(model.inputs, field, &GraphInput::field);
  CHECK(found != model.inputs.end(), "the model reads no field '{}'", field);
  return found->value;
}

Value final_of(const Rewritten& rewritten, Value v) {
  return rewritten.of[static_cast<size_t>(v.id)];
}

size_t bytes_of_row(const TensorDesc& desc) {
  return desc.bytes() / static_cast<size_t>(desc.shape[0]);
}

}  // namespace

std::unique_ptr<TokenSteps> TokenSteps::of(const ModelSpec& model, const std::string& tokens,
                                           const TokenRows& rows, const Backend& backend,
                                           PlanOptions options, const Variables& variables) {
  const Shape sample = input_named(model, tokens).sample;
  const int64_t window = sample.rank() == 1 ? sample[0] : 0;
  if (window < 2) return nullptr;
  const ModelGraph built = build_model(of_one_position(model, tokens, rows.count()));
  std::optional<StepGraph> stepped =
      step_graph(built, input_of(built, tokens), window, rows.count(), rows.sources);
  if (!stepped) return nullptr;
  const Rewritten fused = fuse_forward(stepped->graph);
  auto steps = std::unique_ptr<TokenSteps>(new TokenSteps());
  options.layout = "plain";
  options.variables = &variables;
  steps->plan_ = compile(fused.graph, backend, options);
  steps->rows_ = rows;
  steps->window_ = window;
  steps->token_ = final_of(fused, stepped->token);
  steps->position_ = final_of(fused, stepped->position);
  steps->seen_ = final_of(fused, stepped->seen);
  steps->logits_ = final_of(fused, stepped->logits);
  steps->vocabulary_ = stepped->graph.shape(stepped->logits)[1];
  const auto plain = [&](Value v) -> const TensorDesc& {
    const TensorDesc& desc = steps->plan_.desc(v);
    CHECK(desc.layout.is_plain(), "what is kept lies as {}", desc.to_string());
    return desc;
  };
  for (const StepGraph::Layer& layer : stepped->layers) {
    const TensorDesc& kept = plain(final_of(fused, layer.kept));
    (void)plain(final_of(fused, layer.made));
    steps->layers_.push_back({final_of(fused, layer.kept), final_of(fused, layer.made),
                              kept.shape[1], size_of(kept.dtype),
                              std::vector<std::byte>(kept.bytes())});
  }
  steps->executor_ = std::make_unique<Executor>(steps->plan_, backend);
  if (!stepped->source.valid()) return steps;
  const Rewritten before = fuse_forward(stepped->before);
  options.layout = "last";  // outputs are plain in any case
  steps->front_ = std::make_unique<Front>(
      Front{compile(before.graph, backend, options), final_of(before, stepped->source)});
  Front& front = *steps->front_;
  front.executor = std::make_unique<Executor>(front.plan, backend);
  steps->source_window_ = front.plan.desc(front.source).shape[1];
  for (const StepGraph::Crossing& crossing : stepped->crossings) {
    const TensorDesc& read = plain(final_of(fused, crossing.input));
    const Value made = final_of(before, crossing.before);
    CHECK(front.plan.desc(made).layout.is_plain(), "what crosses lies as {}",
          front.plan.desc(made).to_string());
    steps->given_.push_back({made, final_of(fused, crossing.input), bytes_of_row(read),
                             std::vector<std::byte>(read.bytes())});
  }
  return steps;
}

void TokenSteps::bind(const ReplicaState& model) {
  for (Executor* executor : {executor_.get(), front_ ? front_->executor.get() : nullptr}) {
    if (!executor) continue;
    executor->bind(model);
    executor->pack();
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
    for (size_t row = 0; row < static_cast<size_t>(rows_.count()); ++row)
      std::memcpy(given.memory.data() + row * given.bytes,
                  made + row / static_cast<size_t>(rows_.copies) * given.bytes, given.bytes);
  }
}

std::span<const float> TokenSteps::step(std::span<const int32_t> tokens) {
  const auto rows = static_cast<size_t>(rows_.count()), window = static_cast<size_t>(window_);
  CHECK(count_ < window_ && tokens.size() == rows, "{} tokens for {} sequences, the {}th of {}",
        tokens.size(), rows, count_ + 1, window_);
  bound_tokens_.assign(tokens.begin(), tokens.end());
  bound_positions_.assign(rows, static_cast<int32_t>(count_));
  // The token itself stands behind those that are kept.
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

/// Behind what is kept of each channel.
void TokenSteps::take_made() {
  for (Kept& layer : layers_) {
    const auto* made = static_cast<const std::byte*>(executor_->result(layer.made));
    const size_t of_channel = static_cast<size_t>(window_ - 1) * layer.element,
                 here = static_cast<size_t>(count_) * layer.element;
    for (size_t c = 0; c < static_cast<size_t>(rows_.count() * layer.channels); ++c)
      std::memcpy(layer.memory.data() + c * of_channel + here, made + c * layer.element,
                  layer.element);
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

}  // namespace tutti
