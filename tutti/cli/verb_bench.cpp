// tutti bench: times whole training steps, single operations, or collectives (verb_bench_comm.cpp).

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/log.h"
#include "tutti/cli/config.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/selection_file.h"
#include "tutti/cli/step_bench.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/comm/agree.h"
#include "tutti/models/registry.h"
#include "tutti/trace/record.h"
#include "tutti/train/durable_file.h"
#include "tutti/train/settings.h"

namespace tutti {
namespace {

struct BenchVerb {
  std::string model = "resnet44", precision = "fp32", layout = "auto", json;
  int64_t batch = 128, classes = 0, width = 0;
  std::vector<std::string> sets;
  std::vector<int64_t> hidden;
  size_t tile_bytes = 0;
  int threads = 0, ranks = 0, steps = 20, warmup = 3;
  bool serve = false, profile = false, no_measure = false;
  std::string filter;
  bool check = false;
  double seconds = 0.2;
};

void write_json(const std::string& path, const nlohmann::ordered_json& value) {
  if (!path.empty()) replace_file(path, value.dump(2) + "\n");
}

double peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// The next `run K` of standard input; 0 at `quit` or the end.
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

nlohmann::ordered_json timed_run(StepBench& bench, int64_t steps, int ranks) {
  bench.arrivals();  // forgets those of the warm-up
  const double exposed = bench.exposed_seconds();
  std::vector<double> step_ms;
  double seconds = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const double took = bench.step();
    step_ms.push_back(took * 1e3);
    seconds += took;
  }
  const comm::ArrivalSummary arrivals = bench.arrivals();
  const double images = static_cast<double>(bench.network().training.batch * ranks * steps);
  return {
      {"step_ms", step_ms},
      {"images_per_s", images / seconds},
      {"comm_exposed_ms", (bench.exposed_seconds() - exposed) * 1e3 / static_cast<double>(steps)},
      {"waited_ms", arrivals.waited() * 1e3},
      {"waited_for_late_ms", arrivals.waited_for_late() * 1e3},
      {"data_wait_ms", 0},
      {"peak_rss_bytes", peak_rss_bytes()}};
}

/// Op of each of the plan's steps, by the name that timings bear.
std::map<std::string, std::string> ops_of(const Plan& plan) {
  std::map<std::string, std::string> ops;
  const auto note = [&](const Step& step) { ops[step.name] = step.request.op->name(); };
  for (const Step& step : plan.packs) note(step);
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) note(step);
  for (const UpdateStep& update : plan.updates) note(update.step);
  return ops;
}

/// Runs the steps once more, with clocks around every kernel; those cost time, so nothing else is
/// reported of them.
void print_profile(StepBench& bench, int64_t steps, bool print) {
  bench.executor().set_profiling(true);
  for (int64_t i = 0; i < steps; ++i) bench.step();
  const auto timings = bench.executor().take_timings();
  bench.executor().set_profiling(false);
  if (!print) return;
  const auto ops = ops_of(bench.network().training);
  std::map<std::string, std::pair<double, int>> by_kernel;
  double total = 0;
  for (const Executor::Timing& timing : timings) {
    const std::string name = timing.name.substr(0, timing.name.find(" (finish)"));
    const auto op = ops.find(name);
    auto& [seconds, count] =
        by_kernel[fmt::format("{} by {}{}", op == ops.end() ? name : op->second, timing.kernel,
                              name == timing.name ? "" : " (finish)")];
    seconds += timing.seconds;
    ++count;
    total += timing.seconds;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(by_kernel.begin(),
                                                                   by_kernel.end());
  std::ranges::sort(rows,
                    [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  fmt::print(stderr, "{:>10} {:>7} {:>6}  kernel (time of thread 0)\n", "ms a step", "share",
             "calls");
  for (const auto& [name, row] : rows)
    fmt::print(stderr, "{:>10.3f} {:>6.1f}% {:>6}  {}\n",
               row.first * 1e3 / static_cast<double>(steps), 100 * row.first / total, row.second,
               name);
}

/// The [comm] of a configuration that is otherwise the default.
CommSection comm_section(const BenchVerb& verb) {
  std::vector<Setting> settings;
  for (const std::string& set : verb.sets) {
    const size_t equals = set.find('=');
    if (!set.starts_with("comm.") || equals == std::string::npos)
      throw ConfigError(fmt::format("--set {}: write it as --set comm.KEY=VALUE", set));
    settings.push_back(
        {set.substr(0, equals), set.substr(equals + 1), "--set " + set.substr(0, equals)});
  }
  return read_config({.file = {}, .environment = tutti_environment(), .flags = settings})
      .config.comm;
}

NetworkSpec network_spec(const BenchVerb& verb, const CommSection& comm, int threads) {
  NetworkSpec spec;
  spec.training.model.name = verb.model;
  spec.training.model.batch = verb.batch;
  spec.training.model.classes = verb.classes;
  spec.training.model.width = verb.width;
  spec.training.model.hidden = verb.hidden;
  spec.training.model.activations = verb.precision == "bf16" ? DType::bf16 : DType::f32;
  spec.training.optimizer.momentum = 0.9f;
  spec.training.optimizer.weight_decay = 1e-4f;
  spec.training.bucket_bytes = static_cast<size_t>(comm.bucket_bytes);
  spec.training.compression = compression_policy(comm);
  spec.threads = threads;
  spec.layout = verb.layout;
  spec.tuning_file = tuning_file("auto");
  spec.tile_bytes = verb.tile_bytes;
  spec.measure = !verb.no_measure;
  return spec;
}

int run_step(const BenchVerb& verb) {
  const double started = process_start_time();
  const comm::Launcher launcher = read_launcher();
  log::configure(log::Level::warn, launcher.rank, launcher.size);
  find_model(verb.model);  // a wrong name shows before ranks are started
  const CommSection comm = comm_section(verb);
  if (const auto code =
          launch_ranks(verb.ranks, {.threads = verb.threads, .progress = comm.progress_threads},
                       launcher.name == "none" ? 0 : launcher.size))
    return *code;
  const Job job({.timeout = comm.timeout_s,
                 .nodes = comm.nodes,
                 .threads = verb.threads,
                 .progress = comm.progress_threads});
  comm::Communicator& communicator = job.communicator();
  if (!comm.shape.empty()) communicator.set_shape(comm::LinkShape::parse(comm.shape));
  use_selection(communicator, comm.selection);
  const int threads = job.threads();
  const CpuBackend backend;
  StepBench bench(network_spec(verb, comm, threads), exchange_settings(comm), backend,
                  communicator);
  communicator.barrier();
  const double ready_seconds = unix_now() - started;
  for (int i = 0; i < verb.warmup; ++i) bench.step();

  const bool first = communicator.rank() == 0;
  nlohmann::ordered_json about = {{"program", version_short()},
                                  {"model", verb.model},
                                  {"precision", verb.precision},
                                  {"batch", verb.batch},
                                  {"threads", threads},
                                  {"ranks", communicator.size()},
                                  {"progress", job.progress()},
                                  {"layout", bench.network().training.layout},
                                  {"start_to_first_step_s", ready_seconds},
                                  {"flop_per_image", bench.flop_per_image()},
                                  {"parameters", bench.network().training.graph.parameter_count()}};
  const auto say = [&](const nlohmann::ordered_json& message) {
    if (!first) return;
    fmt::print("{}\n", message.dump());
    std::fflush(stdout);
  };
  if (verb.serve) {
    nlohmann::ordered_json ready = {{"ready", true}};
    ready.update(about);
    say(ready);
    const auto next = [&] {
      return std::stoll(comm::decide(communicator, "waiting for a command on its standard input",
                                     [] { return std::to_string(read_command()); }));
    };
    while (const int64_t steps = next()) {
      communicator.barrier();  // the ranks that waited were asleep
      say(timed_run(bench, steps, communicator.size()));
    }
    return 0;
  }
  communicator.barrier();
  nlohmann::ordered_json result = timed_run(bench, verb.steps, communicator.size());
  result.update(about);
  say(result);
  if (first) write_json(verb.json, result);
  if (verb.profile) print_profile(bench, verb.steps, first);
  return 0;
}

int run_ops(const BenchVerb& verb) {
  log::configure(log::Level::warn, 0, 1);
  const CpuBackend backend;
  const int threads =
      choose_threads(verb.threads, read_surroundings().omp_num_threads, read_topology(), 1);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  int failures = 0, lines = 0;
  fmt::print("{:>10} {:>9} {:>8}  kernel, layout: operation\n", "us", "GFLOP/s", "GB/s");
  for (const std::string& line : conformance_lines()) {
    if (line.find(verb.filter) == std::string::npos) continue;
    ++lines;
    const OpCase op_case = parse_op_case(line);
    for (const OpTiming& timing : time_op(op_case, backend, threads, verb.seconds)) {
      fmt::print("{:>10.2f} {:>9.2f} {:>8.2f}  {}, {}: {}\n", timing.seconds * 1e6,
                 timing.flop / timing.seconds * 1e-9,
                 static_cast<double>(timing.bytes) / timing.seconds * 1e-9, timing.kernel,
                 timing.layout, line);
      rows.push_back({{"line", line},
                      {"kernel", timing.kernel},
                      {"layout", timing.layout},
                      {"seconds", timing.seconds},
                      {"flop", timing.flop},
                      {"bytes", timing.bytes}});
    }
    if (!verb.check) continue;
    const ConformanceReport report = check_conformance(op_case, backend);
    for (const std::string& failure : report.failures) fmt::print("{:>10} {}\n", "WRONG", failure);
    failures += static_cast<int>(report.failures.size());
    rows.push_back({{"line", line}, {"checks", report.runs}, {"failures", report.failures}});
  }
  if (lines == 0) throw ConfigError(fmt::format("--filter '{}' matches no line", verb.filter));
  write_json(verb.json, rows);
  if (failures > 0)
    throw NumericError(fmt::format("{} result(s) differ from the reference", failures));
  return 0;
}

}  // namespace

RunVerb add_bench(CLI::App& verb) {
  auto state = std::make_shared<BenchVerb>();  // shared: std::function must be copyable
  verb.require_subcommand(1);
  CLI::App* step = verb.add_subcommand(
      "step", "Whole training steps on random data in memory, as one line of JSON");
  CLI::App* ops =
      verb.add_subcommand("ops", "Single operations, every kernel's first choice in every layout");
  for (CLI::App* each : {step, ops}) {
    each->add_option("--threads", state->threads,
                     "Compute threads of a rank; 0: as `tutti train` chooses")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    each->add_option("--json", state->json, "Write the results there too")->type_name("FILE");
  }
  step->add_option("--model", state->model, "See `tutti model list`")
      ->type_name("NAME")
      ->capture_default_str();
  step->add_option("--classes", state->classes, "0: the model's own")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  step->add_option("--width", state->width, "Channels of the first stage; 0: the model's own")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  step->add_option("--hidden", state->hidden, "Widths of mlp's hidden layers: --hidden 1024,1024")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  step->add_option("--precision", state->precision, "")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  step->add_option("--batch", state->batch, "Samples of a step on each rank")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  step->add_option("--ranks", state->ranks, "Processes, started with mpirun on this node")
      ->type_name("N")
      ->envname("TUTTI_RANKS")
      ->check(CLI::Range(1, 1 << 20));
  step->add_option("--steps", state->steps, "Timed steps")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  step->add_option("--warmup", state->warmup, "Steps before the first timed one")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  step->add_option("--layout", state->layout, "Of activations; auto: the fastest measured")
      ->check(CLI::IsMember({"auto", "b16c", "last", "plain"}))
      ->capture_default_str();
  step->add_option("--tile-bytes", state->tile_bytes,
                   "Working set of a tile; 0: the size of the core's own cache")
      ->type_name("N");
  step->add_option("--set", state->sets,
                   "A key of the exchange as in a configuration: --set comm.bucket_bytes=1MiB")
      ->type_name("comm.KEY=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  step->add_flag("--no-measure", state->no_measure,
                 "Take the first kernel and layout that accepts");
  step->add_flag(
      "--profile", state->profile,
      "Run the steps again with clocks around every kernel, and print a table on stderr");
  step->add_flag(
      "--serve", state->serve,
      "Take commands from standard input: `run K` and `quit`; see benchmarks/peers/serve.py");
  ops->add_option("--filter", state->filter, "Only lines that contain TEXT")->type_name("TEXT");
  ops->add_option("--seconds", state->seconds, "Spent on each, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  ops->add_flag("--check", state->check, "Compare with the reference, too");
  const RunVerb run_comm = add_bench_comm(verb);
  return [=] {
    return step->parsed() ? run_step(*state) : ops->parsed() ? run_ops(*state) : run_comm();
  };
}

}  // namespace tutti
