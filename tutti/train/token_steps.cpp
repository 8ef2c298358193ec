#include "tutti/train/token_steps.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/attention.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/fuse.h"
#include "tutti/ops/sequence.h"

namespace tutti {
namespace {

/// The graph of one position, rewritten to read what is kept of those before it.
struct SteppedGraph {
  struct Layer {
    Value kept, made;
  };
  Graph graph;
  Value token, position, seen, logits;
  std::vector<Layer> layers;
};

class StepRewriter {
 public:
  StepRewriter(const ModelGraph& model, int64_t window)
      : old_(model.graph), window_(window), of_(old_.values().size()) {
    token_ = model.inputs.front().value;
  }

  std::optional<SteppedGraph> build() && {
    result_.position = graph().input("position", {DType::i32, {1, 1}, {}});
    result_.seen = graph().input("seen", {DType::i32, {1, window_}, {}});
    for (const Node& node : old_.nodes()) {
      if (node.op->name() == "token_loss") {
        result_.logits = convert(graph(), "next", of(node.in[0]), DType::f32);
        graph().mark_output(result_.logits);
        result_.token = of(token_);
        return std::move(result_);
      }
      if (node.op->name() == "count_tokens") continue;  // of labels, which a step has none of
      if (!copy(node)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  Graph& graph() { return result_.graph; }

  /// What the caller binds is copied when it is first read.
  Value of(Value v) {
    Value& known = of_[static_cast<size_t>(v.id)];
    if (known.valid()) return known;
    const ValueInfo& info = old_[v];
    CHECK(info.producer < 0, "{} is read before it is made", info.name);
    switch (info.role) {
      case Role::parameter:
        known = graph().parameter(info.name, info.type.desc.shape, info.init);
        break;
      case Role::statistic:
        known = graph().statistic(info.name, info.type.desc.shape, info.init);
        break;
      default: known = graph().input(info.name, info.type.desc, info.type.batched);
    }
    return known;
  }

  bool copy(const Node& node) {
    if (node.op->name() == "add_positions") {
      const Value x = of(node.in[0]);
      const Value place = lookup(graph(), node.name + ".place", of(node.in[1]), result_.position,
                                 graph().type(x).desc.dtype);
      of_[static_cast<size_t>(node.out[0].id)] = add(graph(), node.name, x, place);
      return true;
    }
    if (node.op->name() == "rotate" || node.op->name() == "add_sinusoids") {
      CHECK(node.in.size() == 1, "{} has positions of its own", node.name);
      of_[static_cast<size_t>(node.out[0].id)] =
          graph().append1(node.name, node.op, {of(node.in[0]), result_.position});
      return true;
    }
    if (const auto* attention = dynamic_cast<const Attention*>(node.op.get()))
      return attend(node, attention->attention());
    std::vector<Value> in;
    for (const Value v : node.in) in.push_back(of(v));
    const std::vector<Value> out = graph().append(node.name, node.op, in);
    for (size_t i = 0; i < out.size(); ++i) of_[static_cast<size_t>(node.out[i].id)] = out[i];
    return true;
  }

  /// What is kept of the tokens before, and behind it this token's.
  Value with_kept(const std::string& name, Value made) {
    const TensorDesc& desc = graph().type(made).desc;
    const Value kept =
        graph().input(name + ".kept", {desc.dtype, {1, desc.shape[1], window_ - 1}, {}});
    graph().mark_output(made);
    result_.layers.push_back({kept, made});
    return concat(graph(), name + ".all", {kept, made}, 2);
  }

  /// Keys and values of this token come behind those that are kept.
  bool attend(const Node& node, AttentionAttributes a) {
    if (!a.causal || a.mask != AttentionMask::none || a.inputs == AttentionInputs::q_and_kv)
      return false;
    std::vector<Value> in;
    if (a.inputs == AttentionInputs::separate) {
      in = {of(node.in[0]), with_kept(node.name + ".k", of(node.in[1])),
            with_kept(node.name + ".v", of(node.in[2]))};
    } else {
      const Value qkv = of(node.in[0]);
      const int64_t channels = graph().shape(qkv)[1],
                    queries = a.heads * (channels / (a.heads + 2 * a.key_heads));
      const Value kv = slice(graph(), node.name + ".kv", qkv, {{queries, channels}, {0, 1}});
      in = {slice(graph(), node.name + ".q", qkv, {{0, queries}, {0, 1}}),
            with_kept(node.name, kv)};
      a.inputs = AttentionInputs::q_and_kv;
    }
    in.push_back(result_.seen);
    a.causal = false;
    a.mask = AttentionMask::keys;
    of_[static_cast<size_t>(node.out[0].id)] = attention(graph(), node.name, in, a);
    return true;
  }

  const Graph& old_;
  const int64_t window_;
  Value token_;
  std::vector<Value> of_;
  SteppedGraph result_;
};

}  // namespace

std::unique_ptr<TokenSteps> TokenSteps::of(const ModelSpec& model, const Backend& backend,
                                           PlanOptions options, const Variables& variables) {
  ModelSpec spec = model;
  const int64_t window = spec.input[0];
  if (window < 2) return nullptr;
  spec.mode = Mode::eval;
  spec.batch = 1;
  if (spec.context == 0 && find_model(spec.name).takes_context) spec.context = window;
  spec.input = {1};
  for (std::vector<ModelField>* fields : {&spec.inputs, &spec.targets})
    for (ModelField& field : *fields) field.sample = {1};
  const ModelGraph built = build_model(spec);
  std::optional<SteppedGraph> stepped = StepRewriter(built, window).build();
  if (!stepped) return nullptr;
  const Rewritten fused = fuse_forward(stepped->graph);
  const auto now = [&](Value v) { return fused.of[static_cast<size_t>(v.id)]; };
  auto steps = std::unique_ptr<TokenSteps>(new TokenSteps());
  options.layout = "plain";
  options.variables = &variables;
  steps->plan_ = compile(fused.graph, backend, options);
  steps->window_ = window;
  steps->token_ = now(stepped->token);
  steps->position_ = now(stepped->position);
  steps->seen_ = now(stepped->seen);
  steps->logits_ = now(stepped->logits);
  steps->vocabulary_ = stepped->graph.shape(stepped->logits)[1];
  for (const SteppedGraph::Layer& layer : stepped->layers) {
    const TensorDesc& kept = steps->plan_.desc(now(layer.kept));
    CHECK(kept.layout.is_plain() && steps->plan_.desc(now(layer.made)).layout.is_plain(),
          "kept keys and values lie as {}", kept.to_string());
    steps->element_ = size_of(kept.dtype);
    steps->layers_.push_back(
        {now(layer.kept), now(layer.made), kept.shape[1], std::vector<std::byte>(kept.bytes())});
  }
  steps->bound_seen_.assign(static_cast<size_t>(window), -1);
  steps->executor_ = std::make_unique<Executor>(steps->plan_, backend);
  return steps;
}

void TokenSteps::bind(const ReplicaState& model) {
  executor_->bind(model);
  executor_->pack();
}

std::span<const float> TokenSteps::step(int32_t token) {
  CHECK(count_ < window_, "{} tokens in a window of {}", count_ + 1, window_);
  bound_token_ = token;
  bound_position_ = static_cast<int32_t>(count_);
  // The token itself stands behind those that are kept.
  for (int64_t i = 0; i < window_; ++i)
    bound_seen_[static_cast<size_t>(i)] = i < count_ || i + 1 == window_ ? 0 : -1;
  executor_->bind_input(token_, &bound_token_);
  executor_->bind_input(position_, &bound_position_);
  executor_->bind_input(seen_, bound_seen_.data());
  for (Kept& layer : layers_) executor_->bind_input(layer.input, layer.memory.data());
  executor_->run({});
  if (count_ + 1 < window_)
    for (Kept& layer : layers_) {
      const auto* made = static_cast<const std::byte*>(executor_->result(layer.made));
      const auto row = static_cast<size_t>(window_ - 1) * element_;
      for (size_t c = 0; c < static_cast<size_t>(layer.channels); ++c)
        std::memcpy(layer.memory.data() + c * row + static_cast<size_t>(count_) * element_,
                    made + c * element_, element_);
    }
  ++count_;
  return {static_cast<const float*>(executor_->result(logits_)), static_cast<size_t>(vocabulary_)};
}

}  // namespace tutti
