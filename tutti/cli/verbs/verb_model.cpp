// tutti model: lists the networks, and shows the parts and the cost of one.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/config/workload_library.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/network_flags.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/models/registry.h"
#include "tutti/models/summary.h"
#include "tutti/plan/plan.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/train/network/training_graph.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct ModelVerb {
  NetworkChoice network;
  ConfigFlags flags;
  int threads = 0;
  bool json = false;
};

struct MemoryLine {
  const char* key;
  const char* text;
  size_t bytes;
};

std::vector<MemoryLine> memory_of(const plan::Plan& plan) {
  const plan::Variables& v = plan.variables;
  const auto threads = static_cast<size_t>(plan.options.threads);
  return {{"results", "results of layers", plan.arena_bytes},
          {"packed_weights", "weights packed for kernels", plan.packed_bytes},
          {"scratch", "tiles in flight, all threads", plan.tile_scratch_bytes * threads},
          {"workspace", "workspace of kernels, all threads", plan.workspace_bytes * threads},
          {"accumulators", "gradients being summed, all threads but one",
           plan.state_bytes * (threads - 1)},
          {"parameters", "parameters", v.parameter_bytes},
          {"gradients", "gradients", v.trained_bytes},
          {"optimizer_state", "optimizer state", v.trained_bytes * v.state_kinds.size()},
          {"statistics", "running statistics", v.statistic_bytes}};
}

int run_list(const ModelVerb& verb) {
  if (verb.json) {
    Json out = Json::array();
    for (const models::ModelInfo& model : models::models())
      out.push_back({{"name", model.name},
                     {"input", std::vector<int64_t>(model.input.begin(), model.input.end())},
                     {"description", model.description}});
    print_json_output(out);
    return 0;
  }
  for (const models::ModelInfo& model : models::models())
    fmt::print("{:<14} {:<10} {}\n", model.name, model.input.to_string(), model.description);
  return 0;
}

void print_model(const models::ModelSummary& summary, const plan::Plan& plan, const ModelVerb& verb,
                 const ComputeBackend& compute) {
  const auto extents = [](const Shape& shape) {
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  Json out = {{"name", summary.name},
              {"input", extents(summary.input)},
              {"classes", summary.classes},
              {"parameters", summary.parameters},
              {"statistics", summary.statistics},
              {"forward_flop", summary.forward_flop},
              {"training_flop", summary.training_flop},
              {"batch", verb.network.batch},
              {"precision", verb.network.precision},
              {"layout", plan.layout}};
  for (const MemoryLine& line : memory_of(plan)) out["memory_bytes"][line.key] = line.bytes;
  if (compute.device) {
    out["device"] = device_json(compute.device->facts());
    out["memory_bytes"]["device"] = plan::planned_memory(plan).total();
  }
  for (const models::LayerSummary& layer : summary.layers)
    out["layers"].push_back({{"name", layer.name},
                             {"op", layer.op},
                             {"output", extents(layer.output)},
                             {"parameters", layer.parameters},
                             {"flop", layer.flop}});
  print_json_output(out);
}

bool is_configuration(const std::string& name) { return name.ends_with(".toml"); }

/// Returns whether the training data is absent. Data that is damaged, or read wrongly, is an error.
bool lacks_data(const config::RunConfig& config) {
  const config::DataSection& data = config.data;
  if (data.dir.empty() && data.train_files.empty()) return data.dataset != "lattices";
  if (!data.dir.empty() && !is_there(data.dir)) return is_absent(data.dir);
  for (const std::string& file : data.train_files)
    if (file.find_first_of("*?[") == file.npos && is_absent(std::filesystem::path(data.dir) / file))
      return true;
  try {
    (void)files_of_part(config, "train");
  } catch (const IoError&) {
    return true;
  } catch (const ConfigError&) {
    return false;
  }
  return false;
}

/// Describes the model without the data: with the network's own input and outputs, or those that
/// the command gives.
models::ModelSpec without_data(const config::RunConfig& config, const NetworkChoice& choice,
                               int64_t batch, const char* why) {
  models::ModelSpec own = train::model_spec(config, batch);
  const models::ModelInfo& model = models::find_model(config.model.name);
  if (!model.build && !model.takes_layers) {
    own.input = choice.input.empty() ? model.input : Shape(std::span<const int64_t>(choice.input));
    log::warn(
        "the data does not say what a sample has ({}): shown is the network for an input of {} "
        "and {} outputs; --input CxHxW and --set model.classes=N are of others",
        why, own.input.to_string(), own.classes > 0 ? own.classes : model.classes);
    return own;
  }
  if (model.takes_layers && (choice.input.empty() || own.classes == 0))
    throw ConfigError(
        fmt::format("the network depends on the data, which does not say what a sample has: {}; "
                    "give --data-dir, or --input CxHxW and --set model.classes=N",
                    why));
  if (!choice.input.empty()) own.input = Shape(std::span<const int64_t>(choice.input));
  log::warn("the data does not say what a sample has ({}): shown is the network without it", why);
  return own;
}

/// Describes the model for the configured data set, or without it if the data is absent.
models::ModelSpec of_data(const config::RunConfig& config, const NetworkChoice& choice,
                          int64_t batch) {
  std::unique_ptr<data::Dataset> train;
  try {
    train = open_configured(config, "train");
  } catch (const Error& error) {
    if (!lacks_data(config)) throw;
    return without_data(config, choice, batch, error.what());
  }
  return train::model_spec(config, *train, batch);
}

/// The network and its update, and what computes it.
struct ShownNetwork {
  train::TrainingGraphSpec training{};
  config::RunConfig config{};  ///< run.device, run.precision and plan.host_kernels count
};

/// Describes the network of a configuration and its update, with the configured batch and
/// precision.
ShownNetwork configured(NetworkChoice& choice, const ConfigFlags& given) {
  const NetworkChoice flags;
  if (choice.batch != flags.batch || choice.precision != flags.precision ||
      choice.classes != flags.classes || choice.width != flags.width || choice.task != flags.task ||
      choice.loss != flags.loss)
    throw ConfigError(
        "model show takes --batch, --precision, --classes, --width, --task and --loss of a network "
        "by its name; of a configuration they stand in the file: batch.local, run.precision, "
        "model.classes, model.width, model.task, loss.pointwise");
  const ResolvedConfig resolved =
      read_config({choice.model, tutti_environment(), given.settings()});
  check_old_places(resolved);
  config::RunConfig config = resolved.config;
  load_library(config.model);
  config.run.threads = 1;
  config.data.generate_when_read = true;
  choice.batch = config::batch_sizes(config.batch, config::replica_count(config.run, 1)).local;
  choice.precision = to_string(config.run.precision);
  ShownNetwork shown{.config = config};
  shown.training.model = of_data(config, choice, choice.batch);
  shown.training.optimizer = config.optimizer;
  shown.training.freeze = config.model.freeze;
  return shown;
}

/// Throws for keys that do not describe a network given by its name.
void check_keys_of_network(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    if (!setting.key.starts_with("model.") && !setting.key.starts_with("optimizer.") &&
        !setting.key.starts_with("loss.") && setting.key != "batch.local" &&
        setting.key != "run.precision" && setting.key != "run.device" &&
        setting.key != "plan.host_kernels")
      throw ConfigError(fmt::format(
          "{}: {} says nothing of a network by its name, but keys of [model], [optimizer] and "
          "[loss], batch.local, run.precision, run.device and plan.host_kernels do: leave it out, "
          "or name a configuration, FILE.toml",
          setting.where, setting.key));
}

/// Describes a network given by its name, as sgd with momentum trains it, or as keys say.
ShownNetwork named_network(NetworkChoice& choice, const ConfigFlags& given) {
  ShownNetwork shown;
  config::find_config_key("run.precision")->set(shown.config, choice.precision);
  train::TrainingGraphSpec& training = shown.training;
  training.model = model_spec(choice);
  training.optimizer.momentum = 0.9;
  std::vector<Setting> settings = given.settings();
  std::erase_if(settings, [](const Setting& s) { return s.key == "run.log_level"; });
  if (settings.empty()) return shown;
  check_keys_of_network(settings);
  settings.insert(settings.begin(), {"model.name", choice.model, "NAME"});
  const ResolvedConfig resolved = read_config({"", {}, settings});
  config::RunConfig& config = shown.config = resolved.config;
  const models::ModelSpec flags = training.model;
  if (choice.batch == 0 && resolved.origins.contains("batch.local"))
    choice.batch = config.batch.local;
  training.model = train::model_spec(config, choice.batch);
  training.optimizer = config.optimizer;
  training.freeze = config.model.freeze;
  // A flag has precedence.
  models::ModelSpec& model = training.model;
  model.input = flags.input, model.inputs = flags.inputs;
  if (flags.classes > 0) model.classes = flags.classes;
  if (flags.width > 0) model.width = flags.width;
  if (flags.depth > 0) model.depth = flags.depth;
  if (flags.heads > 0) model.heads = flags.heads;
  if (flags.task) model.task = flags.task;
  if (choice.loss != NetworkChoice{}.loss) model.pointwise_loss = flags.pointwise_loss;
  if (choice.precision != NetworkChoice{}.precision) {
    model.activations = flags.activations;
    config::find_config_key("run.precision")->set(config, choice.precision);
  } else {
    choice.precision = to_string(config.run.precision);
  }
  return shown;
}

void print_memory(const plan::Plan& plan, const ComputeBackend& compute) {
  const auto line = [](const std::string& text, size_t bytes) {
    fmt::print("  {:<30} {:>10.2f} MiB\n", text, static_cast<double>(bytes) / (1 << 20));
  };
  size_t total = 0;
  for (const MemoryLine& part : memory_of(plan)) {
    total += part.bytes;
    const bool state = std::string_view(part.key) == "optimizer_state" && part.bytes > 0;
    line(part.text +
             (state ? fmt::format(" ({})", fmt::join(plan.variables.state_kinds, ", ")) : ""),
         part.bytes);
  }
  line("all", total);
  if (!compute.device) return;
  line("a training holds on the device", plan::planned_memory(plan).total());
  fmt::print("device {}\n", device_line(compute.device->facts()));
}

int run_show(ModelVerb& verb) {
  ShownNetwork shown = is_configuration(verb.network.model)
                           ? configured(verb.network, verb.flags)
                           : named_network(verb.network, verb.flags);
  train::TrainingGraphSpec& training = shown.training;
  if (!verb.network.input.empty())
    training.model.input = Shape(std::span<const int64_t>(verb.network.input));
  if (training.model.batch == 0)
    training.model.batch = verb.network.batch = usual_batch(training.model);
  const models::ModelSummary summary = models::summarise(training.model);
  const ComputeBackend compute = compute_backend(shown.config);
  const backend::Backend& backend = compute.backend();
  plan::PlanOptions options;
  options.threads =
      compute.device ? 1 : choose_threads(verb.threads, 0, device::read_topology(), 1);
  training.split = {.threads = options.threads, .tile_bytes = backend.tile_bytes()};
  training.repeats_cheap_ops = backend.repeats_cheap_ops();
  training.joins_moves = backend.joins_moves();
  options.layout = verb.network.layout;
  options.measure =
      false;  // memory hardly depends on the kernels, and showing a model should not take seconds
  const plan::Plan plan =
      plan::compile(train::make_training_graph(training).graph, backend, options);
  if (verb.json) {
    print_model(summary, plan, verb, compute);
    return 0;
  }
  fmt::print("{}\nmemory of a rank, training with batch {}, {}, {} thread(s), layout {}\n",
             to_text(summary), verb.network.batch, verb.network.precision, options.threads,
             plan.layout);
  print_memory(plan, compute);
  return 0;
}

}  // namespace

Verb model_verb() {
  auto state = std::make_shared<ModelVerb>();  // shared: std::function must be copyable
  const Verb list{.name = "list",
                  .summary = "List the networks that model.name chooses from",
                  .flags = {json_flag(state->json)},
                  .examples = {{"tutti model list", "All networks"}},
                  .run = [state] { return run_list(*state); }};
  const Verb show{
      .name = "show",
      .summary = "Show layers, shapes, parameters, arithmetic and memory of a network",
      .arguments = {required_flag(
          Names::model, "NAME", {},
          "See tutti model list; or a configuration, FILE.toml, for its network",
          &state->network.model,
          "model show needs a network, for example: tutti model show resnet20")},
      .flags =
          joined(joined(network_flags(state->network),
                        {flag("--threads", "N", "Compute threads, for the memory. 0: all cores",
                              &state->threads, {0}),
                         json_flag(state->json)}),
                 state->flags.flags({"data-dir", "device"})),
      .examples = {{"tutti model show resnet20", "Its layers, parameters and memory"},
                   {"tutti model show run.toml", "Those of the network that a configuration has"},
                   {"tutti model show cosmoflow --set model.kernel=2",
                    "A network with a key of another value"},
                   {"tutti model show resnet50 --batch 32 --precision bf16 --json",
                    "The same for another batch and precision, for a program"}},
      .run = [state] { return run_show(*state); }};
  return {.name = "model",
          .summary = "List the networks, or show what one consists of and costs",
          .see_also = {"tutti help plan"},
          .verbs = {list, show}};
}

}  // namespace tutti::cli
