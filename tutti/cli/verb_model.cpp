// tutti model: the networks there are, and what one consists of and costs.

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/verbs.h"
#include "tutti/models/registry.h"
#include "tutti/models/summary.h"
#include "tutti/plan/plan.h"
#include "tutti/train/training_graph.h"

namespace tutti {
namespace {

struct ModelVerb {
  std::string name, input, precision = "fp32", layout = "auto";
  int64_t classes = 0, batch = 128, width = 0;
  int threads = 0;
  bool json = false;
};

/// "3x32x32" as a shape.
Shape parse_extents(const std::string& text) {
  std::vector<int64_t> extents;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, extent);
    if (error != std::errc{} || stop != text.data() + end || extent <= 0 ||
        extents.size() == Shape::kMaxRank - 1)
      throw ConfigError(fmt::format(
          "--input '{}': write the extents of one sample as CxHxW, for example 3x32x32", text));
    extents.push_back(extent);
    at = end + 1;
  }
  return Shape(std::span<const int64_t>(extents));
}

struct MemoryLine {
  const char* key;
  const char* text;
  size_t bytes;
};

std::vector<MemoryLine> memory_of(const Plan& plan) {
  const Variables& v = plan.variables;
  return {
      {"results", "results of layers", plan.arena_bytes},
      {"packed_weights", "weights packed for kernels", plan.packed_bytes},
      {"scratch", "tiles in flight, all threads",
       plan.tile_scratch_bytes * static_cast<size_t>(plan.options.threads)},
      {"parameters", "parameters", v.parameter_bytes},
      {"gradients", "gradients", v.parameter_bytes},
      {"optimizer_state", "optimizer state (momentum)", v.parameter_bytes * v.state_kinds.size()},
      {"statistics", "running statistics", v.statistic_bytes}};
}

int run_list() {
  for (const ModelInfo& model : models())
    fmt::print("{:<14} {:<10} {}\n", model.name, model.input.to_string(), model.description);
  return 0;
}

void print_json(const ModelSummary& summary, const Plan& plan, const ModelVerb& verb) {
  const auto extents = [](const Shape& shape) {
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  nlohmann::ordered_json out = {{"name", summary.name},
                                {"input", extents(summary.input)},
                                {"classes", summary.classes},
                                {"parameters", summary.parameters},
                                {"statistics", summary.statistics},
                                {"forward_flop", summary.forward_flop},
                                {"training_flop", summary.training_flop},
                                {"batch", verb.batch},
                                {"precision", verb.precision},
                                {"layout", plan.layout}};
  for (const MemoryLine& line : memory_of(plan)) out["memory_bytes"][line.key] = line.bytes;
  for (const LayerSummary& layer : summary.layers)
    out["layers"].push_back({{"name", layer.name},
                             {"op", layer.op},
                             {"output", extents(layer.output)},
                             {"parameters", layer.parameters},
                             {"flop", layer.flop}});
  fmt::print("{}\n", out.dump(2));
}

int run_show(const ModelVerb& verb) {
  ModelSpec spec;
  spec.name = verb.name;
  if (!verb.input.empty()) spec.input = parse_extents(verb.input);
  spec.classes = verb.classes;
  spec.width = verb.width;
  spec.batch = verb.batch;
  spec.activations = verb.precision == "bf16" ? DType::bf16 : DType::f32;
  const ModelSummary summary = summarise(spec);
  TrainingGraphSpec training;
  training.model = spec;
  training.optimizer.momentum = 0.9f;
  PlanOptions options;
  options.threads = choose_threads(verb.threads, 0, read_topology(), 1);
  options.layout = verb.layout;
  options.measure =
      false;  // memory hardly depends on the kernels, and showing a model should not take seconds
  const Plan plan = compile(make_training_graph(training).graph, CpuBackend(), options);
  if (verb.json) {
    print_json(summary, plan, verb);
    return 0;
  }
  fmt::print("{}\nmemory of a rank, training with batch {}, {}, {} thread(s), layout {}\n",
             to_text(summary), verb.batch, verb.precision, options.threads, plan.layout);
  size_t total = 0;
  for (const MemoryLine& line : memory_of(plan)) {
    total += line.bytes;
    fmt::print("  {:<30} {:>10.2f} MiB\n", line.text, static_cast<double>(line.bytes) / (1 << 20));
  }
  fmt::print("  {:<30} {:>10.2f} MiB\n", "all", static_cast<double>(total) / (1 << 20));
  return 0;
}

}  // namespace

RunVerb add_model(CLI::App& verb) {
  auto state = std::make_shared<ModelVerb>();  // shared: std::function must be copyable
  verb.require_subcommand(1);
  CLI::App* list = verb.add_subcommand("list", "The networks that model.name chooses from");
  CLI::App* show =
      verb.add_subcommand("show", "Layers, shapes, parameters, arithmetic and memory of one");
  show->add_option("name", state->name, "See `tutti model list`")->type_name("NAME")->required();
  show->add_option("--input", state->input, "One sample's extents; otherwise the model's own")
      ->type_name("CxHxW");
  show->add_option("--classes", state->classes, "Outputs; 0: the model's own")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  show->add_option("--width", state->width, "Channels of the first stage; 0: the model's own")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  show->add_option("--batch", state->batch, "Samples of a step, for the memory")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  show->add_option("--threads", state->threads, "Compute threads, for the memory; 0: all cores")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  show->add_option("--precision", state->precision, "")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  show->add_option("--layout", state->layout, "Of activations")
      ->check(CLI::IsMember({"auto", "b16c", "last", "plain"}))
      ->capture_default_str();
  show->add_flag("--json", state->json, "For programs");
  return [=] { return list->parsed() ? run_list() : run_show(*state); };
}

}  // namespace tutti
