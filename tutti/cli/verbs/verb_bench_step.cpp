// tutti bench step: times whole training steps.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string_view>

#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/bench/bench_flags.h"
#include "tutti/cli/bench/step_bench.h"
#include "tutti/cli/bench/step_profile.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/cli/verbs/network_flags.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/machine_watch.h"
#include "tutti/device/cpu/process_memory.h"
#include "tutti/keep/result_file.h"
#include "tutti/models/registry.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/trace/record.h"
#include "tutti/train/loop/job_time.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct BenchStepVerb {
  NetworkChoice network;
  DeviceFlags device;
  std::string output, optimizer = "sgd";
  std::vector<std::string> sets;
  std::vector<int64_t> hidden;
  size_t tile_bytes = 0;
  int64_t slabs = 0, batchnorm_group = 1, tensor = 1;
  std::vector<int64_t> spatial;
  int threads = 0, ranks = 0, steps = 20, warmup = 3;
  bool sequence = false, serve = false, profile = false, no_measure = false, json = false;
};

/// Reads the next `run K` of standard input; 0 at `quit` or the end.
int64_t read_command() {
  std::string line;
  while (std::getline(std::cin, line)) {
    long long steps = 0;
    if (line == "quit") return 0;
    if (std::sscanf(line.c_str(), "run %lld", &steps) == 1 && steps > 0) return steps;
    throw ConfigError(fmt::format("--serve: expected `run K` or `quit`, got '{}'", line));
  }
  return 0;
}

/// Reports progress every few seconds: one step of a large network takes as long.
class StepNews {
 public:
  void done(std::string_view kind, int64_t step, int64_t of, double seconds) {
    const auto now = std::chrono::steady_clock::now();
    if (step == of || now - reported_ < std::chrono::seconds(5)) return;
    reported_ = now;
    log::info("{} step {} of {}, which took {:.2f} s", kind, step, of, seconds);
  }

 private:
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

Json timed_run(StepBench& bench, int64_t steps, StepNews& news) {
  bench.arrivals();  // discards the arrivals of the warm-up
  const double exposed = bench.exposed_seconds(), parts = bench.parts_exposed_seconds();
  std::vector<double> step_ms;
  double seconds = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const double took = bench.step();
    step_ms.push_back(took * 1e3);
    seconds += took;
    news.done("timed", i + 1, steps, took);
  }
  const comm::ArrivalSummary arrivals = bench.arrivals();
  const double images =
      static_cast<double>(bench.network().training.batch * bench.replicas() * steps);
  return {
      {"step_ms", step_ms},
      {"images_per_s", images / seconds},
      {"comm_exposed_ms", (bench.exposed_seconds() - exposed) * 1e3 / static_cast<double>(steps)},
      {"parts_exposed_ms",
       (bench.parts_exposed_seconds() - parts) * 1e3 / static_cast<double>(steps)},
      {"waited_ms", arrivals.waited * 1e3},
      {"waited_for_late_ms", arrivals.waited_for_late * 1e3},
      {"data_wait_ms", 0},
      {"peak_rss_bytes", device::peak_resident_bytes()}};
}

/// Returns the bytes that the steps have allocated since `before`: results, scratch and workspaces,
/// without the gradients and the optimizer's state.
double activation_bytes(const StepBench& bench, size_t before) {
  const plan::Variables& variables = bench.network().training.variables;
  const size_t kept = variables.trained_bytes * (1 + variables.state_kinds.size());
  return std::max(0.0, static_cast<double>(device::proportional_bytes()) -
                           static_cast<double>(before) - static_cast<double>(kept));
}

constexpr std::string_view kSettable[] = {"plan.memory", "plan.bf16_error", "plan.host_kernels"};

/// Returns the default configuration except for [comm], a few keys of [plan], and what flags say.
config::RunConfig settings_of(const BenchStepVerb& verb) {
  std::vector<Setting> settings = verb.device.settings();
  for (const std::string& set : verb.sets) {
    const size_t equals = set.find('=');
    const std::string key = set.substr(0, equals);
    if (equals == std::string::npos ||
        (config::find_config_key(key) && !key.starts_with("comm.") &&
         std::ranges::find(kSettable, key) ==
             std::end(kSettable)))  // for an unknown key read_config() suggests another
      throw ConfigError(fmt::format("--set {}: write it as --set comm.KEY=VALUE, or {}", set,
                                    fmt::join(kSettable, " or ")));
    settings.push_back(
        {set.substr(0, equals), set.substr(equals + 1), "--set " + set.substr(0, equals)});
  }
  config::RunConfig config =
      read_config({.environment = tutti_environment(), .flags = settings}).config;
  const bool on_device = train::on_device(config.run);
  for (const Setting& setting : settings) {
    if (setting.key == "plan.bf16_error" && verb.network.precision != "bf16")
      throw ConfigError("plan.bf16_error has no effect: it is only for --precision bf16");
    if (setting.key == "plan.host_kernels" && !on_device)
      throw ConfigError("plan.host_kernels has no effect: it is only for --gpu or --device");
  }
  if (verb.tile_bytes > 0 && on_device)
    throw ConfigError("--tile-bytes has no effect: a device takes the whole batch at once");
  config.parallel = {.spatial = verb.spatial,
                     .batchnorm_group_size = verb.batchnorm_group,
                     .tensor = verb.tensor,
                     .sequence = verb.sequence};
  config.plan.tile_bytes = static_cast<int64_t>(verb.tile_bytes);
  config.plan.slabs = verb.slabs;
  config.plan.measure = !verb.no_measure;
  config::find_config_key("plan.layout")->set(config, verb.network.layout);
  config::find_config_key("run.precision")->set(config, verb.network.precision);
  return config;
}

train::NetworkSpec timed_network(const BenchStepVerb& verb, const config::RunConfig& config) {
  const config::CommSection& comm = config.comm;
  train::NetworkSpec spec;
  spec.training.model = model_spec(verb.network);
  spec.training.model.hidden = verb.hidden;
  spec.training.optimizer =
      verb.optimizer == "adamw"
          ? config::OptimizerSection{.name = config::OptimizerKind::adamw, .weight_decay = 0.1}
          : config::OptimizerSection{.momentum = 0.9, .weight_decay = 1e-4};
  spec.training.bucket_bytes = static_cast<size_t>(comm.bucket_bytes);
  spec.training.compression = config::compression_policy(comm);
  spec.training.split = train::split_settings(config);
  spec.tuning_file = tuning_file("auto");
  spec.plan = config.plan;
  spec.plan.measure = train::measures_kernels(config);
  return spec;
}

/// Prints the times of a step, for people.
void print_step(const Json& result, const trace::MachineUse& use) {
  if (const std::string sentence = trace::disturbance_sentence(use); !sentence.empty())
    fmt::print("{}\n", sentence);
  std::vector<double> ms = result["step_ms"].get<std::vector<double>>();
  std::ranges::sort(ms);
  const int ranks = result["ranks"];
  fmt::print("{}, {}, batch {} a rank, {} rank{} x {} thread(s), layout {}\n",
             result["model"].get<std::string>(), result["precision"].get<std::string>(),
             result["batch"].get<int64_t>(), ranks, ranks == 1 ? "" : "s",
             result["threads"].get<int>(), result["layout"].get<std::string>());
  const auto line = [](const char* what, const std::string& text) {
    fmt::print("{:<22} {}\n", what, text);
  };
  line("step", fmt::format("{:.2f} ms, the median of {} ({:.2f} to {:.2f})", ms[ms.size() / 2],
                           ms.size(), ms.front(), ms.back()));
  const double images = result["images_per_s"], flop = result["flop_per_image"];
  line("images", fmt::format("{:.1f} a second", images));
  line("arithmetic", fmt::format("{:.1f} GFLOP/s", images * flop * 1e-9));
  if (ranks > 1) {
    if (result["parts"].get<int>() > 1)
      line("waits for other parts",
           fmt::format("{:.2f} ms a step", result["parts_exposed_ms"].get<double>()));
    line("waits for gradients", fmt::format("{:.2f} ms a step", result["waited_ms"].get<double>()));
    line("of these for a rank", fmt::format("{:.2f} ms a step that began its exchange later",
                                            result["waited_for_late_ms"].get<double>()));
  }
  line("start to first step",
       fmt::format("{:.2f} s", result["start_to_first_step_s"].get<double>()));
  line("memory of rank 0", fmt::format("{:.0f} MiB at most, of these {:.0f} for activations",
                                       result["peak_rss_bytes"].get<double>() / (1 << 20),
                                       result["activation_bytes"].get<double>() / (1 << 20)));
  if (result.contains("device")) {
    const Json& step = result["device_step"];
    line("a step on the device",
         fmt::format(
             "{:.0f} kernels, {:.0f} copies and {:.0f} calls of the host's kernels, in {:.1f} "
             "replays; {:.1f} waits, one of them for its end",
             step["launches"].get<double>(), step["copies"].get<double>(),
             step["host_work"].get<double>(), step["replays"].get<double>(),
             step["waits"].get<double>()));
    line("memory of the device", fmt::format("{:.0f} MiB at most, of {}",
                                             result["device_peak_bytes"].get<double>() / (1 << 20),
                                             result["device"]["name"].get<std::string>()));
  }
}

Json about_bench(const BenchStepVerb& verb, const Job& job, const StepBench& bench,
                 double ready_seconds) {
  return {{"program", version_short()},
          {"model", verb.network.model},
          {"precision", verb.network.precision},
          {"batch", verb.network.batch},
          {"threads", job.threads()},
          {"ranks", job.communicator().size()},
          {"parts", job.communicator().size() / bench.replicas()},
          {"progress", job.progress()},
          {"layout", bench.network().training.layout},
          {"start_to_first_step_s", ready_seconds},
          {"flop_per_image", bench.flop_per_image()},
          {"planned_bytes", plan::planned_memory(bench.network().training).total()},
          {"results_computed_again", bench.network().training.recomputed.results},
          {"flop_computed_again", bench.network().training.recomputed.flop},
          {"parameters", bench.network().parameters}};
}

/// Times as many steps as each line of standard input requests, until none is requested.
void serve(StepBench& bench, comm::Communicator& communicator,
           const std::function<void(const Json&)>& say) {
  StepNews news;
  const auto next = [&] {
    return std::stoll(comm::decide(communicator, "waiting for a command on its standard input",
                                   [] { return std::to_string(read_command()); }));
  };
  while (const int64_t steps = next()) {
    communicator.barrier();  // the ranks that waited were asleep
    say(timed_run(bench, steps, news));
  }
}

/// Chooses the batch if no flag gives one. A wrong model is found here, before ranks are started.
void settle_batch(BenchStepVerb& verb) {
  models::find_model(verb.network.model);
  if (verb.network.batch > 0) return;
  models::ModelSpec spec = model_spec(verb.network);
  spec.hidden = verb.hidden;
  verb.network.batch = usual_batch(spec);
}

int run_step(BenchStepVerb verb) {
  const double started = process_start_time();
  const comm::Launcher launcher = read_launcher();
  log::configure(verb.serve ? log::Level::warn : log::Level::info, launcher.rank, launcher.size);
  const bool own_batch = verb.network.batch > 0;
  settle_batch(verb);
  config::RunConfig config = settings_of(verb);
  train::check_device(config, std::max(verb.ranks, launcher.size));
  const config::CommSection& comm = config.comm;
  if (const auto code =
          launch_ranks(verb.ranks, {.threads = verb.threads, .progress = comm.progress_threads},
                       launcher.name == "none" ? 0 : launcher.size, {.trains = false}))
    return *code;
  const Job job(job_options(comm, verb.threads));
  comm::Communicator& communicator = job.communicator();
  check_output(communicator, verb.output);
  if (!comm.shape.empty()) communicator.set_shape(comm::LinkShape::parse(comm.shape));
  use_selection(communicator, comm.selection);
  config.run.threads = job.threads();
  const ComputeBackend compute = compute_backend(config);
  const split::PartGrid grid =
      train::part_grid(config.parallel, communicator.size(), communicator.rank());
  log::info("{}, batch {} a rank{}: {}", verb.network.model, verb.network.batch,
            own_batch ? "" : " (--batch takes another)",
            train::measures_kernels(config) ? "compiling and measuring kernels" : "compiling");
  StepBench bench(timed_network(verb, config), train::exchange_settings(comm), compute.backend(),
                  grid, communicator);
  if (config.plan.memory > 0) log::info("{}", plan::memory_text(bench.network().training));
  communicator.barrier();
  const double ready_seconds = trace::unix_now() - started;
  const size_t memory_before = device::proportional_bytes();
  StepNews news;
  for (int i = 0; i < verb.warmup; ++i) news.done("warm-up", i + 1, verb.warmup, bench.step());

  const bool first = communicator.rank() == 0;
  Json about = about_bench(verb, job, bench, ready_seconds);
  const auto say = [&](const Json& message) {
    if (!first) return;
    print_json_output(message, -1);
  };
  if (verb.serve) {
    Json ready = {{"ready", true}};
    ready.update(about);
    say(ready);
    serve(bench, communicator, say);
    return 0;
  }
  communicator.barrier();
  const device::MachineWatch watch;
  const device::DeviceCounts before =
      compute.device ? compute.device->counts() : device::DeviceCounts{};
  Json result = timed_run(bench, verb.steps, news);
  const trace::MachineUse use = train::processor_time_of_job(communicator, watch).shares();
  result.update(about);
  result.update(trace::machine_json(use));
  result["activation_bytes"] = activation_bytes(bench, memory_before);
  if (compute.device) {
    result["device"] = device_json(compute.device->facts());
    const device::DeviceCounts after = compute.device->counts();
    result["device_peak_bytes"] = after.most_bytes;
    const auto a_step = [&](int64_t device::DeviceCounts::*count) {
      return static_cast<double>(after.*count - before.*count) / static_cast<double>(verb.steps);
    };
    result["device_step"] = {{"launches", a_step(&device::DeviceCounts::launches)},
                             {"copies", a_step(&device::DeviceCounts::copies)},
                             {"host_work", a_step(&device::DeviceCounts::host_work)},
                             {"replays", a_step(&device::DeviceCounts::replays)},
                             {"waits", a_step(&device::DeviceCounts::waits)}};
  }
  if (verb.json)
    say(result);
  else if (first)
    print_step(result, use);
  if (first && !verb.output.empty())
    keep::write_result_file(verb.output, print_json(result, 2) + "\n");
  if (verb.profile) print_profile(bench, verb.steps, first);
  return 0;
}

}  // namespace

Verb bench_step_verb() {
  auto state = std::make_shared<BenchStepVerb>();  // shared: std::function must be copyable
  state->network.model = "resnet44";
  return {
      .name = "step",
      .summary = "Time whole training steps on random data in memory",
      .flags = joined(
          joined(joined({named_flag(Names::model, "--model", "NAME", "See tutti model list",
                                    &state->network.model)},
                        network_flags(state->network)),
                 state->device.flags()),
          {bench_threads_flag(state->threads), ranks_flag(state->ranks),
           flag("--hidden", "N,N,...", "Widths of the hidden layers of mlp", &state->hidden, {1}),
           choice_flag("--optimizer", "The update: sgd with momentum, or adamw", &state->optimizer,
                       {"sgd", "adamw"}),
           flag("--steps", "N", "Timed steps", &state->steps, {1}),
           flag("--warmup", "N", "Steps before the first timed one", &state->warmup, {0}),
           flag("--tile-bytes", "N", "Working set of a tile. 0: the size of the core's own cache",
                &state->tile_bytes),
           flag("--spatial", "N,N", "Ranks that share each sample, along its first dimensions",
                &state->spatial, {1}),
           flag("--tensor", "N", "Ranks that share the layers of a replica, without --spatial",
                &state->tensor, {1}),
           switch_flag("--sequence",
                       "They share the positions of sequences between these layers, too",
                       &state->sequence),
           flag("--batchnorm-group", "N", "Replicas whose batch norms see one batch",
                &state->batchnorm_group, {1}),
           flag("--slabs", "N",
                "Slabs of rows that a sample is cut into. 0: as the step needs; 1: none",
                &state->slabs, {0}),
           named_flag(Names::setting, "--set", "KEY=VALUE",
                      "A key of the exchange as in a configuration, for example "
                      "comm.bucket_bytes=1MiB, or plan.memory=2GiB, plan.bf16_error=3, "
                      "plan.host_kernels=true; may be repeated",
                      &state->sets),
           switch_flag("--no-measure", "Take the first kernel and layout that accepts",
                       &state->no_measure),
           switch_flag("--profile",
                       "Run the steps again with clocks around every kernel, and print a table on "
                       "standard error",
                       &state->profile),
           switch_flag("--serve",
                       "Take commands from standard input, `run K` and `quit`, and answer each "
                       "with a line of JSON; see benchmarks/peers/serve.py",
                       &state->serve),
           json_flag(state->json), bench_output_flag(state->output)}),
      .examples = {{"tutti bench step --model resnet20 --batch 64", "A step on all cores"},
                   {"tutti bench step --ranks 2 --threads 1 --json", "Two ranks, for a program"},
                   {"tutti bench step --gpu --batch 256", "A step on an NVIDIA GPU"}},
      .run = [state] { return run_step(*state); }};
}

}  // namespace tutti::cli
