// tutti bench comm: collectives beside those of other libraries, latency, and the tuner of the
// selection table.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/comm_bench.h"
#include "tutti/cli/comm_flags.h"
#include "tutti/cli/comm_latency.h"
#include "tutti/cli/comm_report.h"
#include "tutti/cli/comm_tune.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/progress.h"
#include "tutti/cli/selection_file.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/comm/agree.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/inproc/thread_ranks.h"
#include "tutti/train/durable_file.h"

namespace tutti {
namespace {

struct CommVerb {
  std::string collective, algorithm, element = "f32", op = "sum", transport = "auto",
                                     nodes = "auto", progress = "0", output, shape, peers = "all",
                                     columns = "nccl", selection, table;
  SizeRange range;
  size_t chunk = 0;
  int ranks = 0, iterations = 20, warmup = 5, checks = 1;
  bool print = false, latency = false, tune = false, overlap = false, shared_output = false,
       check_messages = false, json = false;
  std::string moved_by = {};  // how operations are moved forward, once ranks run

  std::vector<comm::Collective> kinds() const {
    return collectives_named(!collective.empty() ? collective : tune ? "all" : "allreduce");
  }
  std::vector<size_t> sizes() const { return sizes_in(range); }
};

void say(const comm::Communicator& communicator, const std::string& text) {
  if (communicator.rank() != 0) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

std::string about(const comm::Communicator& communicator, const CommVerb& verb) {
  const size_t nodes = communicator.one_node() ? 1 : communicator.nodes().size() - 1;
  return fmt::format("# tutti {}; {} rank(s) on {} node(s), {}{}{}; {}{}", version_short(),
                     communicator.size(), nodes, communicator.transport(),
                     verb.shape.empty() ? "" : " as slow as " + verb.shape,
                     verb.check_messages ? " with checksums" : "",
                     verb.moved_by.empty() ? "" : verb.moved_by + "; ", machine_line());
}

std::vector<std::string> algorithms_of(const CommVerb& verb, comm::Collective kind,
                                       const comm::Communicator& communicator) {
  if (verb.algorithm != "all") return {verb.algorithm};
  std::vector<std::string> names;
  const comm::Task task = communicator.task_of({.kind = kind});
  for (const comm::Algorithm* algorithm : comm::algorithms())
    if (refusal_of(*algorithm, task).empty()) names.emplace_back(algorithm->name);
  return names;
}

std::vector<OpenPeer> open_peers(comm::Communicator& communicator, const CommVerb& verb,
                                 bool processes) {
  std::vector<OpenPeer> peers;
  if (verb.columns == "osu") return peers;
  for (const PeerKind* kind : peers_named(verb.peers, processes))
    peers.push_back({std::string(kind->name), kind->open(communicator)});
  return peers;
}

// Returns the number of wrong elements.
size_t bench_sizes(comm::Communicator& communicator, const CommVerb& verb, bool processes) {
  const CommColumns columns = verb.columns == "osu" ? CommColumns::osu : CommColumns::nccl;
  const std::vector<OpenPeer> peers = open_peers(communicator, verb, processes);
  CommBenchOptions options{.element = element_of_flag(verb.element),
                           .op = comm::reduce_op_named(verb.op),
                           .algorithm = {},
                           .chunk = verb.chunk,
                           .iterations = verb.iterations,
                           .warmup = verb.warmup,
                           .checks = verb.checks,
                           .shared_output = verb.shared_output,
                           .overlap = verb.overlap};
  for (const OpenPeer& peer : peers) options.peers.push_back(&peer);
  const auto tell = [&](const std::string& text) {
    if (!verb.json) say(communicator, text);
  };
  tell(about(communicator, verb));
  if (columns == CommColumns::nccl)
    tell(
        fmt::format("# medians of {} iterations after {} of warm-up, in turns; owners write their "
                    "buffers before every call; memcpy: all ranks at once",
                    verb.iterations, verb.warmup));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::vector<double> bus_bandwidths;
  size_t wrong = 0;
  for (const comm::Collective kind : verb.kinds()) {
    options.kind = kind;
    tell(comm_header(columns, options));
    for (const size_t bytes :
         kind == comm::Collective::barrier ? std::vector<size_t>{0} : verb.sizes())
      for (const std::string& algorithm : algorithms_of(verb, kind, communicator)) {
        options.algorithm = algorithm;
        const CommBenchRow row = bench_collective(communicator, options, bytes);
        wrong += row.wrong.value_or(0);
        tell(comm_line(columns, options, row, communicator.size()));
        bus_bandwidths.push_back(
            row.bytes == 0 ? 0 : bus_bandwidth(options.kind, row, communicator.size()));
        rows.push_back(comm_json(options, row, communicator.size()));
      }
  }
  if (columns == CommColumns::nccl) tell(comm_footer(options, wrong, bus_bandwidths));
  if (verb.json) say(communicator, rows.dump(2));
  if (communicator.rank() == 0 && !verb.output.empty())
    replace_file(verb.output, rows.dump(2) + "\n");
  return wrong;
}

void print_latency(comm::Communicator& communicator, const CommVerb& verb) {
  say(communicator, about(communicator, verb));
  say(communicator,
      fmt::format("# Tutti latency, half a round trip between ranks 0 and 1\n{:<10}{:>20}",
                  "# Size", "Latency (us)"));
  for (const size_t bytes : verb.sizes())
    say(communicator,
        fmt::format("{:<10}{:>20.2f}", bytes,
                    bench_latency(communicator, bytes, verb.warmup, verb.iterations) * 1e6));
}

void tune_and_write(comm::Communicator& communicator, const CommVerb& verb) {
  say(communicator,
      fmt::format("{}\n# medians of {} iterations after {} of warm-up, algorithms in turns",
                  about(communicator, verb), verb.iterations, verb.warmup));
  const Tuning tuning = tune(communicator, {.kinds = verb.kinds(),
                                            .sizes = verb.sizes(),
                                            .element = element_of_flag(verb.element),
                                            .op = comm::reduce_op_named(verb.op),
                                            .iterations = verb.iterations,
                                            .warmup = verb.warmup});
  const auto fit = [&] {
    const std::string table = fmt::format(
        "{}\n# {} {}, {} to {} bytes, medians of {}. For comm.selection of a configuration, or "
        "--selection.\n"
        "# collective    ranks  topology      bytes  reproducible  algorithm\n{}",
        about(communicator, verb), verb.element, verb.op, verb.sizes().front(), verb.sizes().back(),
        verb.iterations, comm::Selection(tuning.lines).to_string());
    if (!verb.table.empty()) replace_file(verb.table, table);
    return fmt::format("{}\n{}", tuning_report(tuning), table);
  };
  const std::string report = comm::decide(communicator, "fitting a network to the times", fit);
  if (communicator.rank() == 0) fmt::print("{}", report);
}

int print_schedules(const CommVerb& verb) {
  comm::Task task;
  task.kind = verb.kinds().front();
  task.ranks = std::max(verb.ranks, 2);
  const comm::Element element = element_of_flag(verb.element);
  const comm::ReduceOp op = comm::reduce_op_named(verb.op);
  task.count = parse_bytes(verb.range.max, "-e") / comm::size_of(element) /
               static_cast<size_t>(task.ranks) * static_cast<size_t>(task.ranks);
  task.wide = comm::accumulator_of(element, op) != element;
  task.mean = op == comm::ReduceOp::mean;
  const size_t part = task.count / static_cast<size_t>(task.ranks);
  for (size_t p = 0; p < static_cast<size_t>(task.ranks); ++p)
    task.parts.push_back({p * part, part});
  task.sends = task.receives = task.parts;
  const std::string name =
      verb.algorithm.empty()
          ? read_selection(verb.selection).choose(task, comm::size_of(element), false)
          : verb.algorithm;
  for (task.rank = 0; task.rank < task.ranks; ++task.rank)
    fmt::print("{}", comm::to_string(comm::make_schedule(comm::algorithm_named(name), task)));
  const comm::Steps steps = comm::algorithm_named(name).steps(task);
  fmt::print("formula: {} round(s), {} elements moved by the busiest rank, {} added\n",
             steps.rounds, steps.moved, steps.reduced);
  return 0;
}

// What can be wrong is found before ranks are started.
void check_flags(const CommVerb& verb, bool processes) {
  verb.kinds(), verb.sizes(), element_of_flag(verb.element), comm::reduce_op_named(verb.op),
      peers_named(verb.peers, processes);
  if (!verb.algorithm.empty() && verb.algorithm != "all") comm::algorithm_named(verb.algorithm);
  if (!verb.shape.empty()) comm::LinkShape::parse(verb.shape);
  if (verb.columns == "osu" && verb.peers != "all" && verb.peers != "none")
    throw ConfigError("--columns osu has none for --peers");
  if (verb.columns == "osu" && verb.overlap)
    throw ConfigError("--columns osu has none for --overlap");
}

// Returns the number of wrong elements.
size_t run_rank(comm::Communicator& communicator, CommVerb verb, const std::string& moved_by,
                bool processes) {
  verb.moved_by = moved_by;
  if (!verb.shape.empty()) communicator.set_shape(comm::LinkShape::parse(verb.shape));
  if (verb.check_messages) communicator.set_check();
  use_selection(communicator, verb.selection);
  if (verb.tune)
    tune_and_write(communicator, verb);
  else if (verb.latency)
    print_latency(communicator, verb);
  else
    return bench_sizes(communicator, verb, processes);
  return 0;
}

int run_comm(const CommVerb& verb) {
  const comm::Launcher launcher = read_launcher();
  check_flags(verb, verb.transport != "threads" && (launcher.name != "none" || verb.ranks > 1));
  if (verb.print) return print_schedules(verb);
  log::configure(log::Level::warn, launcher.rank, launcher.size);
  size_t wrong = 0;
  if (verb.transport == "threads") {
    const Topology topology = read_topology();
    comm::run_ranks(std::max(verb.ranks, 1), [&](comm::Communicator& communicator) {
      const size_t mine = run_rank(
          communicator, verb, start_progress(communicator, verb.progress, 1, topology).line, false);
      if (communicator.rank() == 0) wrong = mine;
    });
  } else {
    if (const auto code =
            launch_ranks(verb.ranks, {.threads = 1, .progress = verb.progress},
                         launcher.name == "none" ? 0 : launcher.size, {.trains = false}))
      return *code;
    const Job job({.shared_memory = verb.transport != "mpi",
                   .nodes = verb.nodes,
                   .threads = 1,
                   .progress = verb.progress});
    wrong = run_rank(job.communicator(), verb,
                     job.progress().empty() ? "" : "progress: " + job.progress(),
                     launcher.name != "none");
  }
  if (wrong > 0) throw CommError(fmt::format("{} wrong element(s)", wrong));
  return 0;
}

std::vector<Flag> measuring_flags(CommVerb& state) {
  return {{.names = "--collective",
           .value = "NAME,...",
           .help = "Some of barrier, broadcast, reduce, allreduce, reduce_scatter, allgather, "
                   "gather, scatter, all_to_all; or all. Otherwise allreduce; of --tune all",
           .bind = &state.collective},
          {.names = "--algorithm",
           .value = "NAME",
           .help = "Its algorithm; all: each in turn. Otherwise chosen by size, ranks and topology",
           .bind = &state.algorithm},
          {.names = "-b,--min-bytes",
           .value = "SIZE",
           .help = "Smallest size: 8, 64K, 1.5M, 2G",
           .bind = &state.range.min},
          {.names = "-e,--max-bytes",
           .value = "SIZE",
           .help = "Largest size",
           .bind = &state.range.max},
          {.names = "-f,--factor",
           .value = "X",
           .help = "From a size to the next. 1: -i is added instead",
           .bind = &state.range.factor},
          {.names = "-i,--step-bytes",
           .value = "SIZE",
           .help = "With -f 1: from a size to the next",
           .bind = &state.range.step},
          {.names = "-n,--iterations",
           .value = "N",
           .help = "Timed calls of a size",
           .bind = &state.iterations,
           .least = 1},
          {.names = "-w,--warmup",
           .value = "N",
           .help = "Calls before them",
           .bind = &state.warmup,
           .least = 0},
          {.names = "-c,--check",
           .value = "N",
           .help = "Compare N results of each size, peers' too, with plain arithmetic: every "
                   "element on every rank. One that is wrong ends in exit code 1. 0: none",
           .bind = &state.checks,
           .least = 0,
           .alone = "1"},
          {.names = "-d,--type",
           .value = "TYPE",
           .help = "f32, f64, bf16, f16, i8, i32 or byte; also float, double, bfloat16, half, int8 "
                   "and int32",
           .bind = &state.element},
          {.names = "-o,--op", .value = "OP", .help = "sum, min, max or mean", .bind = &state.op},
          {.names = "--chunk",
           .value = "N",
           .help = "Elements; larger vectors run in chunks. 0: in one piece",
           .bind = &state.chunk}};
}

std::vector<Flag> setting_flags(CommVerb& state) {
  return {
      {.names = "--transport",
       .help = "mpi: no shared memory; threads: ranks are threads of this process",
       .bind = &state.transport,
       .choices = {"auto", "mpi", "threads"}},
      {.names = "--nodes",
       .help = "What makes a node, as the key comm.nodes",
       .bind = &state.nodes,
       .choices = {"auto", "hostname"},
       .variable = "TUTTI_COMM_NODES"},
      {.names = "--shape",
       .value = "RATE,DELAY",
       .help = "Make every rank's link as slow as this, for example 10gbit,50us (not peers')",
       .bind = &state.shape},
      {.names = "--progress",
       .value = "N",
       .help = "Progress threads of a rank: a number, or auto as for training",
       .bind =
           [&state](const std::string& text) {
             if (const std::string wrong = progress_setting_error(text); !wrong.empty())
               throw ConfigError("--progress: " + wrong);
             state.progress = text;
           }},
      {.names = "--shared-output",
       .help = "One output for all ranks, in shared memory, as training sums its gradients "
               "(allreduce; peers have their own)",
       .bind = &state.shared_output},
      {.names = "--overlap",
       .help = "Measure how much of a collective's time is hidden when its rank computes meanwhile",
       .bind = &state.overlap},
      {.names = "--check-collectives",
       .help = "Send a checksum with every message and compare results among ranks, as comm.check "
               "does",
       .bind = &state.check_messages},
      {.names = "--peers",
       .value = "NAMES",
       .help = "Run in turns with all that this build has, none, or some of memcpy,mpi,gloo,oneccl",
       .bind = &state.peers},
      {.names = "--selection",
       .value = "FILE",
       .help = "Take algorithms from this table, which --tune wrote",
       .bind = &state.selection,
       .kind = Names::file,
       .variable = "TUTTI_COMM_SELECTION",
       .key = "comm.selection"},
      {.names = "--columns",
       .help = "As nccl-tests, or as OSU's benchmarks: average, least and most of the ranks, "
               "without peers",
       .bind = &state.columns,
       .choices = {"nccl", "osu"}},
      json_flag(state.json),
      {.names = "-J,--output",
       .value = "FILE",
       .help = "Write the rows there as JSON, too",
       .bind = &state.output,
       .kind = Names::file}};
}

std::vector<Flag> other_measurements(CommVerb& state) {
  const std::vector<std::string> of_rows = {
      "--algorithm", "--check",   "--chunk",         "--peers", "--columns",
      "--json",      "--overlap", "--shared-output", "--print", "--output"};
  std::vector<std::string> of_collectives = of_rows;
  of_collectives.insert(of_collectives.end(), {"--tune", "--collective", "--type", "--op"});
  return {{.names = "--latency",
           .help = "Half a round trip between ranks 0 and 1, as osu_latency",
           .bind = &state.latency,
           .group = "Instead",
           .excludes = of_collectives},
          {.names = "--tune",
           .value = "FILE",
           .help = "Time all algorithms, print times beside prices, and write the table of the "
                   "fastest to FILE",
           .bind =
               [&state](const std::string& file) {
                 state.tune = true;
                 state.table = file;
               },
           .kind = Names::file,
           .group = "Instead",
           .alone = "",
           .excludes = of_rows},
          {.names = "--print",
           .help = "Print the schedule of every rank for -e bytes, and run nothing",
           .bind = &state.print,
           .group = "Instead"}};
}

}  // namespace

Verb bench_comm_verb() {
  auto state = std::make_shared<CommVerb>();  // shared: std::function must be copyable
  return {
      .name = "comm",
      .summary = "Time collectives beside memcpy, the MPI library's own, Gloo and oneCCL",
      .text =
          "Columns and flags are those of nccl-tests. All sides run in turns, and owners write "
          "their buffers again before every call, so no side reads what its cache still holds.",
      .flags = joined(joined(joined({ranks_flag(state->ranks)}, measuring_flags(*state)),
                             setting_flags(*state)),
                      other_measurements(*state)),
      .foreign =
          {{"-g", "here a rank is a process of its own; write --ranks N"},
           {"-t", "here a rank is a process of its own; write --ranks N, or --transport threads"},
           {"-z", "every call here is waited for before the next one begins"},
           {"-a",
            "times here are medians over the calls of the mean over the ranks; --columns osu "
            "prints least and most"}},
      .examples = {{"tutti bench comm --ranks 2 -b 1K -e 16M -f 4",
                    "Sum vectors of 1 KiB to 16 MiB on two ranks, beside all peers"},
                   {"tutti bench comm --ranks 4 --collective all --algorithm all --peers none",
                    "Every algorithm of every collective"},
                   {"srun -n 64 tutti bench comm --tune table.txt",
                    "Find the fastest algorithms of a cluster, for the key comm.selection"}},
      .see_also = {"docs/communication.md"},
      .run = [state] { return run_comm(*state); }};
}

}  // namespace tutti
