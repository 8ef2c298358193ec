// tutti bench ops: times single operations.

#include <fmt/format.h>

#include <memory>

#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/bench/bench_flags.h"
#include "tutti/cli/bench/bench_watch.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/keep/result_file.h"

namespace tutti::cli {
namespace {

struct BenchOpsVerb {
  std::string filter, output;
  int threads = 0;
  double seconds = 0.2;
  bool check = false, json = false;
};

constexpr const char* kOnDevices =
    "it times the CPU's kernels; 'tutti bench step --gpu --profile' times those of a device.";

int run_ops(const BenchOpsVerb& verb) {
  log::configure(log::Level::warn, 0, 1);
  if (!verb.output.empty()) keep::check_result_file(verb.output);
  const backend::CpuBackend backend;
  const int threads =
      choose_threads(verb.threads, read_surroundings().omp_num_threads, device::read_topology(), 1);
  const auto alone = comm::make_single_communicator();
  BenchWatch watch(*alone);
  Json rows = Json::array();
  const auto add = [&](Json row) {  // a row at a time: all of them take minutes
    if (verb.json) print_output((rows.empty() ? "[\n" : ",\n") + print_json(row));
    rows.push_back(std::move(row));
  };
  int failures = 0, lines = 0;
  if (!verb.json)
    fmt::print("{:>10} {:>9} {:>8}  kernel, layout: operation\n", "us", "GFLOP/s", "GB/s");
  for (const std::string& line : backend::conformance_lines()) {
    if (line.find(verb.filter) == std::string::npos) continue;
    ++lines;
    const backend::OpCase op_case = backend::parse_op_case(line);
    for (const backend::OpTiming& timing :
         backend::time_op(op_case, backend, threads, verb.seconds)) {
      if (!verb.json)
        fmt::print("{:>10.2f} {:>9.2f} {:>8.2f}  {}, {}: {}\n", timing.seconds * 1e6,
                   timing.flop / timing.seconds * 1e-9,
                   static_cast<double>(timing.bytes) / timing.seconds * 1e-9, timing.kernel,
                   timing.layout, line);
      add({{"line", line},
           {"kernel", timing.kernel},
           {"layout", timing.layout},
           {"seconds", timing.seconds},
           {"flop", timing.flop},
           {"bytes", timing.bytes}});
    }
    if (!verb.check) continue;
    const backend::ConformanceReport report = backend::check_conformance(op_case, backend);
    if (!verb.json)
      for (const std::string& failure : report.failures)
        fmt::print("{:>10} {}\n", "WRONG", failure);
    failures += static_cast<int>(report.failures.size());
    add({{"line", line}, {"checks", report.runs}, {"failures", report.failures}});
  }
  if (lines == 0) throw ConfigError(fmt::format("--filter '{}' matches no line", verb.filter));
  watch.end();
  if (verb.json) print_output(rows.empty() ? "[]\n" : "\n]\n");
  if (!verb.output.empty()) keep::write_result_file(verb.output, print_json(rows, 2) + "\n");
  if (failures > 0)
    throw NumericError(fmt::format("{} result(s) differ from the reference", failures));
  return 0;
}

}  // namespace

Verb bench_ops_verb() {
  auto state = std::make_shared<BenchOpsVerb>();  // shared: std::function must be copyable
  return {.name = "ops",
          .summary = "Time single operations: every kernel's first choice in every layout",
          .flags = {flag("--filter", "TEXT", "Only lines that contain TEXT", &state->filter),
                    flag("--seconds", "X", "Spent on each, at least", &state->seconds, {1e-6}),
                    switch_flag("--check", "Compare with the reference, too", &state->check),
                    bench_threads_flag(state->threads), json_flag(state->json),
                    bench_output_flag(state->output)},
          .foreign = {{"--device", kOnDevices}, {"--gpu", kOnDevices}},
          .examples = {{"tutti bench ops --filter conv --check",
                        "Time all convolutions, and compare them with the reference"}},
          .run = [state] { return run_ops(*state); }};
}

}  // namespace tutti::cli
