#include "tests/plan/science_step.h"

#include <array>
#include <cmath>
#include <cstring>

#include "tutti/backend/cpu/onednn/version.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/models/network/cosmoflow.h"
#include "tutti/models/network/deepcam.h"
#include "tutti/models/network/fc_densenet.h"
#include "tutti/models/network/gpt2.h"
#include "tutti/models/network/llama.h"
#include "tutti/models/network/resnet.h"
#include "tutti/models/network/transformer.h"
#include "tutti/models/network/vgg.h"
#include "tutti/models/network/vit.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/ops/sequence/sequence.h"
#include "tutti/train/network/weights.h"

namespace tutti::test {
namespace {

constexpr std::string_view kFull = "-full", kWide = "-wide";

/// Signals of 3 channels at 24 samples in pieces of 4: with numbers for sequences of which some
/// positions are padding, or with two numbers at each sample.
ScienceNetwork encoder_of(bool whole, DType activations, int64_t batch) {
  models::ModelSpec spec{.name = "sequence-encoder",
                         .task = models::TaskKind::regress,
                         .input = {3, 24},
                         .input_field = "signals",
                         .target_field = "target",
                         .batch = batch,
                         .classes = 5,
                         .width = 48,
                         .hidden = {80},
                         .depth = 2,
                         .heads = 3,
                         .kernel = 4,
                         .activations = activations};
  spec.inputs = {{.name = "signals", .sample = {3, 24}}};
  if (whole) spec.inputs.push_back({.name = "padding", .sample = {6}});
  spec.targets = {{.name = "target", .sample = whole ? Shape{5} : Shape{2, 24}}};
  const models::ModelGraph built = models::build_model(spec);
  ScienceNetwork n{built.graph, built.inputs[0].value, built.targets[0].value,
                   built.outputs[0].prediction, built.losses[0]};
  if (whole) n.source = built.inputs[1].value;
  return n;
}

/// Adds the target and the loss of a prediction of numbers.
void add_loss(ScienceNetwork& n, ops::PointwiseLossKind kind) {
  n.target = n.graph.input("target", {DType::f32, n.graph.shape(n.out), {}});
  n.loss = ops::pointwise_loss(n.graph, "loss", n.out, n.target, {.kind = kind});
}

ScienceNetwork forward_of(std::string_view name, DType activations, int64_t batch) {
  const bool full = name.ends_with(kFull), wide = name.ends_with(kWide);
  if (full || wide) name.remove_suffix(kFull.size());
  ScienceNetwork n;
  graph::Graph& g = n.graph;
  if (name == "deepcam") {
    const int64_t height = full ? 768 : wide ? 128 : 64, width = full ? 1152 : 96;
    n.in = g.input("fields", {activations, {batch, 16, height, width}, {}});
    n.out = models::deepcam_logits(
        g, n.in,
        full ? models::DeepCamSpec{} : models::DeepCamSpec{.divisor = 8, .middle_blocks = 2});
    n.target = g.input("labels", {DType::i32, {batch, height, width}, {}});
    const std::array frequencies{0.986267818390377, 0.0004578708870701058, 0.01327431072255291};
    ops::SoftmaxCrossEntropyAttributes loss{.class_weights = {},
                                            .mean_over = ops::MeanOver::labels};
    for (const double f : frequencies)
      loss.class_weights.push_back(static_cast<float>(std::pow(f, -0.125)));
    n.loss = ops::softmax_cross_entropy(g, "loss", n.out, n.target, loss);
  } else if (name == "spectra") {
    // Here layers that parts share come before one that reads a whole field.
    n.in = g.input("volume", {activations, {batch, 4, 32, 32, 32}, {}});
    const graph::Value x = ops::conv(
        g, "conv1", n.in,
        {.out_channels = 16, .kernel = ops::in_all(3), .pad = ops::in_all(1), .bias = true});
    n.out = ops::dense(
        g, "fc",
        ops::power_spectrum(g, "power", ops::activation(g, "gelu", x, ops::ActivationKind::gelu)),
        {.outputs = 4});
    add_loss(n, ops::PointwiseLossKind::mse);
  } else if (name == "gpt2") {
    const int64_t positions = full ? 64 : 24;
    const models::Gpt2Spec spec =
        full ? models::Gpt2Spec{}
             : models::Gpt2Spec{
                   .vocabulary = 61, .context = 32, .depth = 2, .width = 48, .heads = 3};
    n.in = g.input("tokens", {DType::i32, {batch, positions}, {}});
    n.target = g.input("next", {DType::i32, {batch, positions}, {}});
    const ops::TokenLabels next = ops::count_tokens(g, "count", n.target, spec.vocabulary);
    const ops::TokenLosses losses =
        ops::token_loss(g, "loss", models::gpt2_logits(g, n.in, {}, activations, spec), next);
    n.out = losses.surprise;
    n.loss = losses.loss;
  } else if (name == "llama") {
    const models::LlamaSpec spec{.vocabulary = 61,
                                 .depth = 2,
                                 .width = 48,
                                 .heads = 6,
                                 .key_heads = 2,
                                 .hidden = 80,
                                 .base = 500};
    n.in = g.input("tokens", {DType::i32, {batch, 24}, {}});
    n.target = g.input("next", {DType::i32, {batch, 24}, {}});
    const ops::TokenLabels next = ops::count_tokens(g, "count", n.target, spec.vocabulary);
    const ops::TokenLosses losses =
        ops::token_loss(g, "loss", models::llama_logits(g, n.in, {}, activations, spec), next);
    n.out = losses.surprise;
    n.loss = losses.loss;
  } else if (name == "vit") {
    n.in = g.input("image", {activations, {batch, 3, full ? 224 : 24, full ? 224 : 32}, {}});
    models::VitSpec spec{.encoder = {.width = 192, .heads = 3}};
    if (!full) spec = {.classes = 10, .patch = 8, .encoder = {.depth = 2, .width = 48, .heads = 3}};
    n.out = ops::convert(g, "prediction", models::vit_logits(g, n.in, spec), DType::f32);
    add_loss(n, ops::PointwiseLossKind::mse);
  } else if (name == "resnet50") {
    const int64_t side = full ? 224 : 64;
    const models::ModelSpec spec{.classes = full ? 1000 : 10, .width = full ? 64 : 8};
    n.in = g.input("image", {activations, {batch, 3, side, side}, {}});
    n.out = ops::convert(g, "prediction", models::imagenet_resnet_logits(g, n.in, spec, 50),
                         DType::f32);
    n.target = g.input("labels", {DType::i32, {batch}, {}});
    n.loss = ops::softmax_cross_entropy(g, "loss", n.out, n.target);
  } else if (name == "resnet44") {
    n.in = g.input("image", {activations, {batch, 3, 32, 32}, {}});
    n.out = ops::convert(g, "prediction", models::cifar_resnet_logits(g, n.in, {.classes = 10}, 44),
                         DType::f32);
    n.target = g.input("labels", {DType::i32, {batch}, {}});
    n.loss = ops::softmax_cross_entropy(g, "loss", n.out, n.target);
  } else if (name == "sequence" || name == "sequence-samples") {
    return encoder_of(name == "sequence", activations, batch);
  } else if (name == "transformer") {
    const int64_t positions = full ? 64 : 17;
    models::TransformerSpec spec{.dropout = 0};
    if (!full)
      spec = {.vocabulary = 61, .depth = 2, .width = 48, .heads = 3, .hidden = 80, .dropout = 0};
    n.in = g.input("tokens", {DType::i32, {batch, positions}, {}});
    n.source = g.input("source", {DType::i32, {batch, full ? 64 : 24}, {}});
    n.target = g.input("next", {DType::i32, {batch, positions}, {}});
    const ops::TokenLabels next = ops::count_tokens(g, "count", n.target, spec.vocabulary);
    const ops::TokenLosses losses =
        ops::token_loss(g, "loss", models::transformer_logits(g, n.source, n.in, activations, spec),
                        next, {.label_smoothing = 0.1f});
    n.out = losses.surprise;
    n.loss = losses.loss;
  } else if (name == "fc-densenet") {
    // Three blocks down and up: one number at each position, as for potentials.
    n.in = g.input("pattern", {activations, {batch, 1, 32, 32}, {}});
    n.out = models::fc_densenet_prediction(g, n.in,
                                           {.outputs = 1,
                                            .layers = {2, 1, 2},
                                            .bottleneck = 2,
                                            .growth = 6,
                                            .first = 8,
                                            .dropout = 0});
    add_loss(n, ops::PointwiseLossKind::huber);
  } else if (name == "vgg") {
    n.in = g.input("pattern", {activations, {batch, 1, 64, 64}, {}});
    n.out = models::vgg_bn_logits(
        g, n.in, {.classes = 4, .width = 8, .hidden = {16, 16}, .dropout = 0.0f}, 11);
    add_loss(n, ops::PointwiseLossKind::huber);
  } else {
    CHECK((name == "cosmoflow2" || name == "cosmoflow3") && !wide, "no network {}", name);
    const int64_t side = full ? 128 : 32, channels = full ? 32 : 16;
    n.in = g.input("volume", {activations, {batch, 4, side, side, side}, {}});
    n.out = models::cosmoflow_prediction(
        g, n.in, {.kernel = name.back() - '0', .channels = channels, .dropout = 0});
    add_loss(n, ops::PointwiseLossKind::mse);
  }
  g.mark_output(n.out);
  g.mark_output(n.loss);
  return n;
}

ScienceNetwork rectified_of(const ScienceNetwork& n, Rectifiers rectifiers) {
  Rectified made = rectify(n.graph, rectifiers);
  const auto at = [&](graph::Value v) { return made.graph.of[static_cast<size_t>(v.id)]; };
  ScienceNetwork rectified{made.graph.graph, at(n.in),   at(n.target),
                           at(n.out),        at(n.loss), made.masks};
  if (n.source.valid()) rectified.source = at(n.source);
  return rectified;
}

/// Class numbers are few; tokens are below 61, and some of a source's and of the next tokens are
/// none.
int32_t random_number(const std::string& name, const TensorDesc& desc, Rng& rng) {
  if (desc.shape.rank() != 2) return static_cast<int32_t>(rng.below(3));
  return static_cast<int32_t>(rng.below(61)) - (name != "in" && rng.below(8) == 0 ? 61 : 0);
}

/// Makes random numbers of the type, in plain layout.
keep::NamedTensor random_tensor(const std::string& name, const TensorDesc& desc, uint64_t data) {
  keep::NamedTensor made{name, desc, std::vector<std::byte>(desc.bytes())};
  Rng rng(3 + data, Purpose::test, desc.dtype == DType::i32);
  for (int64_t i = 0; i < desc.elements(); ++i) {
    std::byte* const at = made.bytes.data() + static_cast<size_t>(i) * size_of(desc.dtype);
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof(value)); };
    if (desc.dtype == DType::i32)
      put(random_number(name, desc, rng));
    else if (desc.dtype == DType::bf16)
      put(bf16(rng.normal()));
    else
      put(rng.normal());
  }
  return made;
}

/// Reads the tensor from the file with inputs, if there is one, else makes random numbers.
keep::NamedTensor tensor_of(const std::string& name, const TensorDesc& desc, const StepData& data) {
  if (data.inputs.empty()) return random_tensor(name, desc, data.data);
  const keep::SafetensorsFile file(data.inputs);
  const keep::SafetensorsFile::Entry* entry = file.find(name);
  CHECK(entry != nullptr, "{} has no '{}'", data.inputs, name);
  keep::NamedTensor taken = file.read(*entry);
  CHECK(taken.desc == desc, "{}: '{}' is {} {}, not {} {}", data.inputs, name,
        name_of(taken.desc.dtype), taken.desc.shape, name_of(desc.dtype), desc.shape);
  return taken;
}

/// Returns the bytes of a plain tensor in the plan's layout.
std::vector<std::byte> laid_out(const keep::NamedTensor& plain, const TensorDesc& desc) {
  std::vector<std::byte> bytes(desc.bytes());
  const size_t size = size_of(desc.dtype);
  std::array<int64_t, Shape::kMaxRank> index{};
  for (int64_t i = 0; i < desc.elements(); ++i) {
    int64_t rest = i;
    for (int d = desc.shape.rank() - 1; d >= 0; rest /= desc.shape[d], --d)
      index[static_cast<size_t>(d)] = rest % desc.shape[d];
    const auto to = static_cast<size_t>(desc.layout.offset(desc.shape, index.data()));
    std::memcpy(bytes.data() + to * size, plain.bytes.data() + static_cast<size_t>(i) * size, size);
  }
  return bytes;
}

/// Returns 1 where the result of a ReLU is positive.
keep::NamedTensor mask_of(const keep::NamedTensor& seen) {
  CHECK(seen.desc.dtype == DType::f32, "'{}' is {}, masks are f32", seen.name,
        name_of(seen.desc.dtype));
  keep::NamedTensor mask = seen;
  for (size_t i = 0; i < mask.bytes.size() / sizeof(float); ++i) {
    float value = 0;
    std::memcpy(&value, mask.bytes.data() + i * sizeof(float), sizeof(float));
    value = value > 0 ? 1.0f : 0.0f;
    std::memcpy(mask.bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return mask;
}

keep::NamedTensor copied(const std::string& name, const TensorDesc& desc, const void* data) {
  keep::NamedTensor made{name, desc, std::vector<std::byte>(desc.bytes())};
  std::memcpy(made.bytes.data(), data, made.bytes.size());
  return made;
}

}  // namespace

ScienceNetwork science_network(const std::string& name, DType activations, int64_t batch,
                               const split::SplitSettings& split, Rectifiers rectifiers) {
  ScienceNetwork plain = forward_of(name, activations, batch);
  if (rectifiers != Rectifiers::relu) plain = rectified_of(plain, rectifiers);
  const ops::Rewritten cut = split::split_samples(plain.graph, split);
  const ops::Rewritten forward = ops::fuse_forward(cut.graph);
  ops::Rewritten fused = ops::in_turn(
      forward, ops::fuse_heads(forward.graph, forward.graph.with_role(graph::Role::parameter)));
  const auto at = [](const ops::Rewritten& rewritten, graph::Value v) {
    return rewritten.of[static_cast<size_t>(v.id)];
  };
  const size_t first_backward = fused.graph.nodes().size();
  ops::differentiate(fused.graph, std::array{at(fused, at(cut, plain.loss))});
  ops::Rewritten lean = ops::recompute_activations(fused.graph, first_backward);
  const ops::Rewritten summed = ops::fold_row_sums(lean.graph);
  const ops::Rewritten tied = ops::fold_lookup_sums(summed.graph);
  ops::Rewritten folded = ops::fold_residual_sums(tied.graph);
  const auto last = [&](graph::Value v) {
    return at(folded, at(tied, at(summed, at(lean, at(fused, at(cut, v))))));
  };
  ScienceNetwork made{folded.graph, last(plain.in), last(plain.target), last(plain.out),
                      last(plain.loss)};
  for (const graph::Value v : plain.masks) made.masks.push_back(last(v));
  if (plain.source.valid()) made.source = last(plain.source);
  return made;
}

bool has_fast_blocks() { return backend::onednn_effective_isa().starts_with("avx512"); }

namespace {

ScienceStep run_plan(const ScienceNetwork& network, const plan::Plan& plan,
                     plan::Executor& executor, const StepData& data) {
  train::Weights weights(plan.variables, 1);
  weights.initialise(7);
  if (!data.weights.empty()) weights.import_model(keep::SafetensorsFile(data.weights));
  device::Buffer gradients(plan.variables.parameter_bytes);
  plan::ReplicaState replica = weights.replica(0);
  replica.gradients = gradients.data();
  executor.bind(replica);
  ScienceStep step;
  const auto plain = [&](graph::Value v) {
    TensorDesc desc = plan.desc(v);
    desc.layout = Layout::plain();
    return desc;
  };
  step.in = tensor_of("in", plain(network.in), data);
  step.target = tensor_of("target", plain(network.target), data);
  const std::vector<std::byte> in = laid_out(step.in, plan.desc(network.in)),
                               target = laid_out(step.target, plan.desc(network.target));
  executor.bind_input(network.in, in.data());
  executor.bind_input(network.target, target.data());
  std::vector<std::byte> source;
  if (network.source.valid()) {
    step.source = random_tensor("source", plain(network.source), data.data + 1);
    source = laid_out(step.source, plan.desc(network.source));
    executor.bind_input(network.source, source.data());
  }
  CHECK(data.held == nullptr || data.held->seen.size() == network.masks.size(),
        "{} masks are held of {} ReLUs", data.held->seen.size(), network.masks.size());
  std::vector<std::vector<std::byte>> masks;
  for (size_t i = 0; data.held != nullptr && i < network.masks.size(); ++i) {
    masks.push_back(laid_out(mask_of(data.held->seen[i]), plan.desc(network.masks[i])));
    executor.bind_input(network.masks[i], masks.back().data());
  }
  executor.pack();
  executor.run({.seed = 1, .step = 0, .replica = 0, .batch = plan.batch});
  step.out = copied("out", plain(network.out), executor.result(network.out));
  step.loss = copied("loss", plain(network.loss), executor.result(network.loss));
  for (size_t i = 0; data.held == nullptr && i < network.masks.size(); ++i)
    step.seen.push_back(copied(network.graph[network.masks[i]].name, plain(network.masks[i]),
                               executor.result(network.masks[i])));
  for (const plan::Variable& variable : plan.variables.parameters) {
    keep::NamedTensor& gradient = step.gradients.emplace_back(
        keep::NamedTensor{variable.name, {DType::f32, variable.desc.shape, {}}, {}});
    gradient.bytes.resize(gradient.desc.bytes());
    plan::export_plain(variable, gradients.data(), reinterpret_cast<float*>(gradient.bytes.data()));
  }
  step.model =
      keep::materialise(weights.model_tensors(weights.parameters(), weights.statistics(0)));
  step.layout = plan.layout;
  for (const plan::PlanBand& band : plan.bands)
    for (const plan::Step& s : band.steps) ++step.kernels[s.kernel];
  return step;
}

}  // namespace

ScienceStep run_step(const ScienceNetwork& network, const backend::Backend& backend,
                     const plan::PlanOptions& options, const StepData& data) {
  const plan::Plan plan = plan::compile(network.graph, backend, options);
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  return run_plan(network, plan, *executor, data);
}

std::span<const float> numbers_of(const keep::NamedTensor& t) {
  return {reinterpret_cast<const float*>(t.bytes.data()), t.bytes.size() / sizeof(float)};
}

double far(std::span<const float> a, std::span<const float> b) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double x = a[i], y = b[i];
    apart += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(apart) / (std::sqrt(size) + 1e-6);
}

ScienceStep run_part(const ScienceNetwork& network, const backend::Backend& backend,
                     const plan::PlanOptions& options, const split::PartGrid& grid,
                     comm::Communicator& communicator, const StepData& data) {
  const plan::Plan plan = plan::compile(network.graph, backend, options);
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  train::PartExchange parts(communicator, grid, plan, *executor);
  executor->set_exchanges(parts);
  return run_plan(network, plan, *executor, data);
}

}  // namespace tutti::test
