// tutti bench comm: times collectives beside other libraries', latency, and the tuner of the
// selection table.

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/bench/bench_flags.h"
#include "tutti/cli/bench/comm_measurement.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/progress.h"
#include "tutti/cli/peers/peer.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::cli {
namespace {

// Throws if a collective does not support the requested type or algorithm.
void check_collective(const CommMeasurement& verb, comm::Collective kind, int ranks) {
  if (comm::reduces(kind) && !comm::has_arithmetic(element_of_flag(verb.element)))
    throw ConfigError(fmt::format("--type {}: bytes can be moved, but not reduced, as {} does",
                                  verb.element, comm::name_of(kind)));
  if (verb.algorithm.empty() || verb.algorithm == "all") return;
  comm::Task task;
  task.kind = kind, task.ranks = ranks;
  task.equal_blocks = kind == comm::Collective::all_to_all;
  const std::string why = refusal_of(comm::algorithm_named(verb.algorithm), task);
  if (!why.empty()) throw ConfigError("--algorithm: " + why);
}

// Finds mistakes before ranks are started.
void check_measurement(const CommMeasurement& verb, int ranks, bool processes) {
  comm::reduce_op_named(verb.op), peers_named(verb.peers, processes);
  const size_t least = verb.sizes().front(), element = comm::size_of(element_of_flag(verb.element));
  if (!verb.latency && least > 0 && least < element)
    throw ConfigError(fmt::format("-b {}: less than one element of {}, which has {} bytes", least,
                                  verb.element, element));
  for (const comm::Collective kind : verb.kinds()) check_collective(verb, kind, ranks);
  if (verb.latency && ranks < 2)
    throw ConfigError("--latency: a message needs two ranks: --ranks 2");
  if (!verb.shape.empty()) comm::LinkShape::parse(verb.shape);
  if (verb.columns != "osu") return;
  if (verb.peers != "all" && verb.peers != "none")
    throw ConfigError("--columns osu has none for --peers");
  if (verb.overlap) throw ConfigError("--columns osu has none for --overlap");
}

int run_comm(const CommMeasurement& verb) {
  const comm::Launcher launcher = read_launcher();
  check_measurement(verb, std::max({verb.ranks, launcher.size, 1}),
                    verb.transport != "threads" && (launcher.name != "none" || verb.ranks > 1));
  if (verb.print) {
    print_schedules(verb);
    return 0;
  }
  log::configure(log::Level::warn, launcher.rank, launcher.size);
  size_t wrong = 0;
  if (verb.transport == "threads") {
    const device::Topology topology = device::read_topology();
    comm::run_ranks(std::max(verb.ranks, 1), [&](comm::Communicator& communicator) {
      CommMeasurement asked = verb;
      asked.moved_by = start_progress(communicator, verb.progress, 1, topology).line;
      const size_t mine = measure_comm(communicator, asked, false);
      if (communicator.rank() == 0) wrong = mine;
    });
  } else {
    if (const auto code =
            launch_ranks(verb.ranks, {.threads = 1, .progress = verb.progress},
                         launcher.name == "none" ? 0 : launcher.size, {.trains = false}))
      return *code;
    const Job job({.shared_memory = verb.transport != "mpi",
                   .nodes = verb.nodes,
                   .wire = verb.wire,
                   .threads = 1,
                   .progress = verb.progress});
    CommMeasurement asked = verb;
    if (!job.progress().empty()) asked.moved_by = "progress: " + job.progress();
    wrong = measure_comm(job.communicator(), asked, launcher.name != "none");
  }
  if (wrong > 0) throw CommError(fmt::format("{} wrong element(s)", wrong));
  return 0;
}

std::vector<Flag> measuring_flags(CommMeasurement& state) {
  return {flag("--collective", "NAME,...",
               "Some of barrier, broadcast, reduce, allreduce, reduce_scatter, allgather, "
               "gather, scatter, all_to_all; or all. Otherwise allreduce; of --tune all",
               &state.collective),
          flag("--algorithm", "NAME",
               "Its algorithm; all: each in turn. Otherwise chosen by size, ranks and topology",
               &state.algorithm),
          flag("-b,--min-bytes", "SIZE", "Smallest size: 8, 64K, 1.5M, 2G", &state.range.min),
          flag("-e,--max-bytes", "SIZE", "Largest size", &state.range.max),
          flag("-f,--factor", "X", "From a size to the next. 1: -i is added instead",
               &state.range.factor),
          flag("-i,--step-bytes", "SIZE", "With -f 1: from a size to the next", &state.range.step),
          flag("-n,--iterations", "N", "Timed calls of a size", &state.iterations, {1}),
          flag("-w,--warmup", "N", "Calls before them", &state.warmup, {0}),
          {.names = "-c,--check",
           .value = "N",
           .help = "Compare N results of each size, peers' too, with plain arithmetic: every "
                   "element on every rank. One that is wrong ends in exit code 1. 0: none",
           .bind = &state.checks,
           .least = 0,
           .alone = "1"},
          flag("-d,--type", "TYPE",
               "f32, f64, bf16, f16, i8, i32, i64, u8 or byte; also float, double, bfloat16, "
               "half, int8, int32, int64 and uint8",
               &state.element),
          flag("-o,--op", "OP", "sum, min, max, mean or product", &state.op),
          flag("--chunk", "N",
               "Elements; larger vectors run in chunks. 0: in one piece, but for long ones "
               "between nodes",
               &state.chunk)};
}

std::vector<Flag> setting_flags(CommMeasurement& state) {
  return {
      choice_flag("--transport",
                  "mpi: no shared memory; threads: ranks are threads of this process",
                  &state.transport, {"auto", "mpi", "threads"}),
      choice_flag("--nodes", "What makes a node, as the key comm.nodes", &state.nodes,
                  {"auto", "hostname"}, "TUTTI_COMM_NODES"),
      choice_flag("--wire", "What carries messages between hosts, as the key comm.wire",
                  &state.wire, {"auto", "mpi", "tcp"}, "TUTTI_COMM_WIRE"),
      flag("--shape", "RATE,DELAY",
           "Make every rank's link as slow as this, for example 10gbit,50us (not peers')",
           &state.shape),
      flag("--progress", "N", "Progress threads of a rank: a number, or auto as for training",
           [&state](const std::string& text) {
             if (const std::string wrong = progress_setting_error(text); !wrong.empty())
               throw ConfigError("--progress: " + wrong);
             state.progress = text;
           }),
      switch_flag("--shared-output",
                  "One output for all ranks, in shared memory, as training sums its gradients "
                  "(allreduce; peers have their own)",
                  &state.shared_output),
      switch_flag(
          "--overlap",
          "Measure how much of a collective's time is hidden when its rank computes meanwhile",
          &state.overlap),
      switch_flag(
          "--check-collectives",
          "Send a checksum with every message and compare results among ranks, as comm.check "
          "does",
          &state.check_messages),
      flag("--peers", "NAMES",
           "Run in turns with all that this build has, none, or some of memcpy,mpi,gloo,oneccl",
           &state.peers),
      {.names = "--selection",
       .value = "FILE",
       .help = "Take algorithms from this table, which --tune wrote",
       .bind = &state.selection,
       .kind = Names::file,
       .variable = "TUTTI_COMM_SELECTION",
       .key = "comm.selection"},
      choice_flag("--columns",
                  "As nccl-tests, or as OSU's benchmarks: average, least and most of the ranks, "
                  "without peers",
                  &state.columns, {"nccl", "osu"}),
      json_flag(state.json),
      bench_output_flag(state.output, "-J")};
}

std::vector<Flag> other_measurements(CommMeasurement& state) {
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
  auto state = std::make_shared<CommMeasurement>();  // shared: std::function must be copyable
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

}  // namespace tutti::cli
