// tutti bench comm: collectives, with the columns and flags of nccl-tests.

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/comm_bench.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/progress.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/inproc/thread_ranks.h"
#include "tutti/train/durable_file.h"

namespace tutti {
namespace {

struct CommVerb {
  std::string collective = "allreduce", algorithm, element = "f32", op = "sum", min = "8", max = "32M", transport = "auto", nodes = "auto", progress = "0", json, shape;
  double factor = 4;
  size_t chunk = 0;
  int ranks = 0, iterations = 20, warmup = 5;
  bool check = false, check_messages = false, print = false, no_peers = false, overlap = false;
};

size_t parse_bytes(const std::string& text, const char* flag) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const double scale = unit.empty() || unit == "B" ? 1 : unit == "K" || unit == "KiB" ? 1024 : unit == "M" || unit == "MiB" ? 1 << 20 : unit == "G" || unit == "GiB" ? 1 << 30 : 0;
  if (error != std::errc() || scale == 0 || value <= 0) throw ConfigError(fmt::format("{}: expected bytes such as 64K, 1.5M or 2G, got '{}'", flag, text));
  return static_cast<size_t>(value * scale);
}

comm::Collective collective_named(const std::string& name) {
  std::string known;
  for (int kind = 0; kind < comm::kCollectives; ++kind) {
    const std::string_view candidate = comm::name_of(static_cast<comm::Collective>(kind));
    if (candidate == name) return static_cast<comm::Collective>(kind);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate);
  }
  throw ConfigError(fmt::format("no collective is called '{}'; there are {}", name, known));
}

std::vector<std::string> algorithms_of(const CommVerb& verb, comm::Collective kind, int ranks) {
  if (verb.algorithm != "all") return {verb.algorithm};
  std::vector<std::string> names;
  comm::Task task;
  task.kind = kind, task.ranks = ranks;
  for (const comm::Algorithm* algorithm : comm::algorithms())
    if (refusal_of(*algorithm, task).empty()) names.emplace_back(algorithm->name);
  return names;
}

void print_row(const CommBenchOptions& options, const CommBenchRow& row, int ranks) {
  const double gb = 1e9;
  const bool reduces = comm::reduces(options.kind);
  std::string line = fmt::format("{:>12} {:>12} {:>6} {:>6} {:<19} {:>10.2f} {:>8.3f} {:>8.3f} {:>7}", row.bytes, row.count, comm::name_of(options.element),
                                 reduces ? comm::name_of(options.op) : "none", row.algorithm, row.seconds * 1e6, row.algorithm_bandwidth() / gb,
                                 row.algorithm_bandwidth() / gb * bus_factor(options.kind, ranks), row.wrong ? fmt::format("{}", *row.wrong) : "N/A");
  if (options.peers) line += fmt::format(" {:>10.2f} {:>10}", row.memcpy_seconds * 1e6, row.mpi_seconds ? fmt::format("{:.2f}", *row.mpi_seconds * 1e6) : "N/A");
  if (row.hidden) line += fmt::format(" {:>9.0f}%", *row.hidden * 100);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const CommBenchOptions& options, const CommBenchRow& row, int ranks) {
  nlohmann::ordered_json json = {{"collective", comm::name_of(options.kind)}, {"ranks", ranks},   {"bytes", row.bytes},
                                 {"count", row.count},                        {"type", comm::name_of(options.element)},
                                 {"redop", comm::name_of(options.op)},        {"algorithm", row.algorithm},
                                 {"time_us", row.seconds * 1e6},              {"algbw_GBps", row.algorithm_bandwidth() / 1e9},
                                 {"busbw_GBps", row.algorithm_bandwidth() / 1e9 * bus_factor(options.kind, ranks)}};
  if (row.wrong) json["wrong"] = *row.wrong;
  if (options.peers) json["memcpy_us"] = row.memcpy_seconds * 1e6;
  if (row.hidden) json["hidden"] = *row.hidden;
  if (row.mpi_seconds) json["mpi_us"] = *row.mpi_seconds * 1e6;
  return json;
}

// Returns the number of wrong elements.
size_t bench_sizes(comm::Communicator& communicator, const CommVerb& verb, bool processes, const std::string& progress) {
  CommBenchOptions options{.kind = collective_named(verb.collective), .element = comm::element_named(verb.element), .op = comm::reduce_op_named(verb.op), .algorithm = {},
                           .chunk = verb.chunk, .iterations = verb.iterations, .warmup = verb.warmup, .check = verb.check, .overlap = verb.overlap, .peers = !verb.no_peers, .processes = processes};
  const bool first = communicator.rank() == 0;
  if (!verb.shape.empty()) communicator.set_shape(comm::LinkShape::parse(verb.shape));
  if (verb.check_messages) communicator.set_check();
  if (first) {
    const size_t nodes = communicator.one_node() ? 1 : communicator.nodes().size() - 1;
    fmt::print("# tutti {}; {} rank(s) on {} node(s), {}{}{}; {}{}\n", version_short(), communicator.size(), nodes, communicator.transport(), verb.shape.empty() ? "" : " as slow as " + verb.shape,
               verb.check_messages ? " with checksums" : "", progress.empty() ? "" : progress + "; ", machine_line());
    fmt::print("# medians of {} iterations after {} of warm-up; owners write their buffers before every call; memcpy: all ranks at once\n", verb.iterations, verb.warmup);
    fmt::print("#{:>11} {:>12} {:>6} {:>6} {:<19} {:>10} {:>8} {:>8} {:>7}{}{}\n", "size(B)", "count", "type", "redop", "algorithm", "time(us)", "algbw", "busbw", "#wrong",
               options.peers ? fmt::format(" {:>10} {:>10}", "memcpy(us)", "MPI(us)") : "", options.overlap ? fmt::format(" {:>10}", "hidden") : "");
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  size_t wrong = 0;
  const size_t last = parse_bytes(verb.max, "-e");
  for (auto bytes = static_cast<double>(parse_bytes(verb.min, "-b")); static_cast<size_t>(bytes) <= last; bytes *= verb.factor)
    for (const std::string& algorithm : algorithms_of(verb, options.kind, communicator.size())) {
      options.algorithm = algorithm;
      const CommBenchRow row = bench_collective(communicator, options, static_cast<size_t>(bytes));
      wrong += row.wrong.value_or(0);
      if (!first) continue;
      print_row(options, row, communicator.size());
      rows.push_back(json_of(options, row, communicator.size()));
    }
  if (first && !verb.json.empty()) replace_file(verb.json, rows.dump(2) + "\n");
  return wrong;
}

int print_schedules(const CommVerb& verb) {
  comm::Task task;
  task.kind = collective_named(verb.collective);
  task.ranks = std::max(verb.ranks, 2);
  const comm::Element element = comm::element_named(verb.element);
  const comm::ReduceOp op = comm::reduce_op_named(verb.op);
  task.count = parse_bytes(verb.max, "-e") / comm::size_of(element) / static_cast<size_t>(task.ranks) * static_cast<size_t>(task.ranks);
  task.wide = comm::accumulator_of(element, op) != element;
  task.mean = op == comm::ReduceOp::mean;
  const size_t part = task.count / static_cast<size_t>(task.ranks);
  for (size_t p = 0; p < static_cast<size_t>(task.ranks); ++p) task.parts.push_back({p * part, part});
  task.sends = task.receives = task.parts;
  const std::string name = verb.algorithm.empty() ? comm::Selection().choose(task, comm::size_of(element), false) : verb.algorithm;
  for (task.rank = 0; task.rank < task.ranks; ++task.rank) fmt::print("{}", comm::to_string(comm::make_schedule(comm::algorithm_named(name), task)));
  const comm::Steps steps = comm::algorithm_named(name).steps(task);
  fmt::print("formula: {} round(s), {} elements moved by the busiest rank, {} added\n", steps.rounds, steps.moved, steps.reduced);
  return 0;
}

int run_comm(const CommVerb& verb) {
  if (!(verb.factor > 1)) throw ConfigError("-f: sizes grow by a factor above 1");
  collective_named(verb.collective), comm::element_named(verb.element), comm::reduce_op_named(verb.op);
  if (!verb.algorithm.empty() && verb.algorithm != "all") comm::algorithm_named(verb.algorithm);
  if (!verb.shape.empty()) comm::LinkShape::parse(verb.shape);
  if (verb.print) return print_schedules(verb);
  const comm::Launcher launcher = read_launcher();
  log::configure(log::Level::warn, launcher.rank, launcher.size);
  size_t wrong = 0;
  if (verb.transport == "threads") {
    const Topology topology = read_topology();
    comm::run_ranks(std::max(verb.ranks, 1), [&](comm::Communicator& communicator) {
      const std::string progress = start_progress(communicator, verb.progress, 1, topology).line;
      const size_t mine = bench_sizes(communicator, verb, false, progress);
      if (communicator.rank() == 0) wrong = mine;
    });
  } else {
    if (const auto code = launch_ranks(verb.ranks, {.threads = 1, .progress = verb.progress}, launcher.name == "none" ? 0 : launcher.size)) return *code;
    const Job job({.shared_memory = verb.transport != "mpi", .nodes = verb.nodes, .threads = 1, .progress = verb.progress});
    wrong = bench_sizes(job.communicator(), verb, launcher.name != "none", job.progress().empty() ? "" : "progress: " + job.progress());
  }
  if (wrong > 0) throw CommError(fmt::format("{} wrong element(s)", wrong));
  return 0;
}

}  // namespace

RunVerb add_bench_comm(CLI::App& bench) {
  auto state = std::make_shared<CommVerb>();
  CLI::App* verb = bench.add_subcommand("comm", "Collectives, beside memcpy and the MPI library's own; columns and flags as nccl-tests");
  verb->add_option("--ranks", state->ranks, "Processes, started with mpirun on this node")->type_name("N")->envname("TUTTI_RANKS")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--collective", state->collective, "barrier, broadcast, reduce, allreduce, reduce_scatter, allgather, gather, scatter, all_to_all")->capture_default_str();
  verb->add_option("--algorithm", state->algorithm, "A name; `all` for each; otherwise chosen by size, ranks and topology");
  verb->add_option("-d,--type", state->element, "f32, f64, bf16, f16, i8, i32, byte")->capture_default_str();
  verb->add_option("-o,--op", state->op, "sum, min, max, mean")->capture_default_str();
  verb->add_option("-b,--min-bytes", state->min, "Smallest size")->capture_default_str();
  verb->add_option("-e,--max-bytes", state->max, "Largest size")->capture_default_str();
  verb->add_option("-f,--factor", state->factor, "From a size to the next")->capture_default_str();
  verb->add_option("-n,--iterations", state->iterations, "Timed calls of a size")->check(CLI::PositiveNumber)->capture_default_str();
  verb->add_option("-w,--warmup", state->warmup, "Calls before them")->check(CLI::NonNegativeNumber)->capture_default_str();
  verb->add_option("--chunk", state->chunk, "Elements; larger vectors run in chunks. 0: in one piece")->capture_default_str();
  verb->add_option("--transport", state->transport, "auto, mpi (no shared memory), threads (ranks are threads of this process)")
      ->check(CLI::IsMember({"auto", "mpi", "threads"}))
      ->capture_default_str();
  verb->add_option("--nodes", state->nodes, "What makes a node, as the key comm.nodes")->envname("TUTTI_COMM_NODES")->check(CLI::IsMember({"auto", "hostname"}))->capture_default_str();
  verb->add_option("--shape", state->shape, "Make every rank's link as slow as this: 10gbit,50us (not memcpy and MPI's own)");
  verb->add_option("--progress", state->progress, "Progress threads of a rank: a number, or auto as for training")->check(progress_setting_error)->capture_default_str();
  verb->add_flag("--overlap", state->overlap, "Measure how much of a collective's time is hidden when its rank computes meanwhile");
  verb->add_flag("-c,--check", state->check, "Compare every result with plain arithmetic; exit status 1 if one is wrong");
  verb->add_flag("--check-collectives", state->check_messages, "Send a checksum with every message and compare results among ranks, as comm.check does");
  verb->add_flag("--print", state->print, "Print the schedule of every rank for -e bytes, and run nothing");
  verb->add_flag("--no-peers", state->no_peers, "Neither memcpy nor the MPI library's own");
  verb->add_option("-J,--json", state->json, "Write the rows there too")->type_name("FILE");
  return [=] { return run_comm(*state); };
}

}  // namespace tutti
