#include "tutti/cli/bench/comm_measurement.h"

#include <fmt/format.h>

#include <chrono>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/cli/bench/bench_flags.h"
#include "tutti/cli/bench/bench_watch.h"
#include "tutti/cli/bench/comm_bench.h"
#include "tutti/cli/bench/comm_report.h"
#include "tutti/cli/bench/comm_tune.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/result_file.h"

namespace tutti::cli {
namespace {

void say(const comm::Communicator& communicator, const std::string& text) {
  if (communicator.rank() != 0) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

std::string about(const comm::Communicator& communicator, const CommMeasurement& asked) {
  return fmt::format("# tutti {}; {} rank(s) on {} node(s), {}{}{}; {}{}", version_short(),
                     communicator.size(), communicator.nodes(), communicator.transport(),
                     asked.shape.empty() ? "" : " as slow as " + asked.shape,
                     asked.check_messages ? " with checksums" : "",
                     asked.moved_by.empty() ? "" : asked.moved_by + "; ", machine_line());
}

std::vector<std::string> algorithms_of(const CommMeasurement& asked, comm::Collective kind,
                                       const comm::Communicator& communicator) {
  if (asked.algorithm != "all") return {asked.algorithm};
  std::vector<std::string> names;
  const comm::Task task = communicator.planner().task_of({.kind = kind});
  for (const comm::Algorithm* algorithm : comm::algorithms())
    if (refusal_of(*algorithm, task).empty()) names.emplace_back(algorithm->name);
  return names;
}

std::vector<OpenPeer> open_peers(comm::Communicator& communicator, const CommMeasurement& asked,
                                 bool processes) {
  std::vector<OpenPeer> peers;
  if (asked.columns == "osu") return peers;
  for (const PeerKind* kind : peers_named(asked.peers, processes))
    peers.push_back({std::string(kind->name), kind->open(communicator)});
  return peers;
}

// Returns the number of wrong elements.
size_t bench_sizes(comm::Communicator& communicator, const CommMeasurement& asked, bool processes) {
  const CommColumns columns = asked.columns == "osu" ? CommColumns::osu : CommColumns::nccl;
  const std::vector<OpenPeer> peers = open_peers(communicator, asked, processes);
  CommBenchOptions options{.element = element_of_flag(asked.element),
                           .op = comm::reduce_op_named(asked.op),
                           .algorithm = {},
                           .chunk = asked.chunk,
                           .iterations = asked.iterations,
                           .warmup = asked.warmup,
                           .checks = asked.checks,
                           .shared_output = asked.shared_output,
                           .overlap = asked.overlap};
  for (const OpenPeer& peer : peers) options.peers.push_back(&peer);
  const auto tell = [&](const std::string& text) {
    if (!asked.json) say(communicator, text);
  };
  tell(about(communicator, asked));
  if (columns == CommColumns::nccl)
    tell(
        fmt::format("# medians of {} iterations after {} of warm-up, in turns; owners write their "
                    "buffers before every call; memcpy: all ranks at once",
                    asked.iterations, asked.warmup));
  Json rows = Json::array();
  std::vector<double> bus_bandwidths;
  size_t wrong = 0;
  for (const comm::Collective kind : asked.kinds()) {
    options.kind = kind;
    tell(comm_header(columns, options));
    for (const size_t bytes :
         kind == comm::Collective::barrier ? std::vector<size_t>{0} : asked.sizes())
      for (const std::string& algorithm : algorithms_of(asked, kind, communicator)) {
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
  if (asked.json && communicator.rank() == 0) print_json_output(rows);
  if (communicator.rank() == 0 && !asked.output.empty())
    keep::write_result_file(asked.output, print_json(rows, 2) + "\n");
  return wrong;
}

void print_latency(comm::Communicator& communicator, const CommMeasurement& asked) {
  say(communicator, about(communicator, asked));
  say(communicator,
      fmt::format("# Tutti latency, half a round trip between ranks 0 and 1\n{:<10}{:>20}",
                  "# Size", "Latency (us)"));
  for (const size_t bytes : asked.sizes())
    say(communicator,
        fmt::format("{:<10}{:>20.2f}", bytes,
                    bench_latency(communicator, bytes, asked.warmup, asked.iterations) * 1e6));
}

void tune_and_write(comm::Communicator& communicator, const CommMeasurement& asked) {
  say(communicator,
      fmt::format("{}\n# medians of {} iterations after {} of warm-up, algorithms in turns",
                  about(communicator, asked), asked.iterations, asked.warmup));
  const Tuning tuning = tune(communicator, {.kinds = asked.kinds(),
                                            .sizes = asked.sizes(),
                                            .element = element_of_flag(asked.element),
                                            .op = comm::reduce_op_named(asked.op),
                                            .iterations = asked.iterations,
                                            .warmup = asked.warmup});
  std::string table;
  const auto fit = [&] {
    table = fmt::format(
        "{}\n# {} {}, {} to {} bytes, medians of {}. For comm.selection of a configuration, or "
        "--selection.\n"
        "# collective    ranks  topology      bytes  reproducible  algorithm\n{}",
        about(communicator, asked), asked.element, asked.op, asked.sizes().front(),
        asked.sizes().back(), asked.iterations, comm::Selection(tuning.lines).to_string());
    return fmt::format("{}\n{}", tuning_report(tuning), table);
  };
  const std::string report = comm::decide(communicator, "fitting a network to the times", fit);
  if (communicator.rank() == 0) fmt::print("{}", report);
  // Writes the file after printing: a full disk does not lose the results.
  comm::decide(communicator, "writing the table", [&] {
    if (!asked.table.empty()) keep::write_result_file(asked.table, table);
    return std::string();
  });
}

// Posts a round and waits for its messages, in both directions.
void exchange(comm::Communicator& communicator, comm::Channel& channel, size_t round,
              uint64_t number) {
  channel.post(round);
  const auto pending = [&] {
    return comm::Pending{.operation = "ping-pong",
                         .sequence = number,
                         .arrived = {},
                         .missing = channel.missing().not_arrived};
  };
  communicator.wait_for([&] { return channel.received(); }, pending);
  channel.release();
  communicator.wait_for([&] { return channel.sent(); }, pending);
}

}  // namespace

double bench_latency(comm::Communicator& communicator, size_t bytes, int warmup, int iterations) {
  if (communicator.size() < 2) throw ConfigError("--latency: a message needs two ranks: --ranks 2");
  const int rank = communicator.rank();
  const auto ping = communicator.allocate(bytes), pong = communicator.allocate(bytes);
  // Rank 0 sends and expects the answer in one round; rank 1 answers in the next.
  std::vector<comm::RoundOfMessages> rounds;
  if (rank == 0)
    rounds = {{.receives = {{1, pong->data(), bytes}}, .sends = {{1, ping->data(), bytes}}}};
  if (rank == 1)
    rounds = {{.receives = {{0, pong->data(), bytes}}, .sends = {}},
              {.receives = {}, .sends = {{0, ping->data(), bytes}}}};
  const auto channel = communicator.channels().open(rounds);
  communicator.channels().connect();
  communicator.barrier();
  auto begin = std::chrono::steady_clock::now();
  for (int i = -warmup; i < iterations; ++i) {
    if (i == 0) begin = std::chrono::steady_clock::now();
    for (size_t round = 0; round < rounds.size(); ++round)
      exchange(communicator, *channel, round, static_cast<uint64_t>(i + warmup));
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                   iterations / 2;
  communicator.broadcast_value(seconds, 0);
  return seconds;
}

size_t measure_comm(comm::Communicator& communicator, const CommMeasurement& asked,
                    bool processes) {
  if (!asked.shape.empty()) communicator.set_shape(comm::LinkShape::parse(asked.shape));
  if (asked.check_messages) communicator.set_check();
  use_selection(communicator, asked.selection);
  for (const std::string& file : {asked.output, asked.table}) check_output(communicator, file);
  BenchWatch watch = asked.json ? BenchWatch(communicator)
                                : BenchWatch(communicator, [&](const std::string& text) {
                                    say(communicator, "# " + text);
                                  });
  size_t wrong = 0;
  if (asked.tune)
    tune_and_write(communicator, asked);
  else if (asked.latency)
    print_latency(communicator, asked);
  else
    wrong = bench_sizes(communicator, asked, processes);
  watch.end();
  return wrong;
}

void print_schedules(const CommMeasurement& asked) {
  comm::Task task;
  task.kind = asked.kinds().front();
  task.ranks = std::max(asked.ranks, 2);
  const comm::Element element = element_of_flag(asked.element);
  const comm::ReduceOp op = comm::reduce_op_named(asked.op);
  task.count = parse_bytes(asked.range.max, "-e") / comm::size_of(element) /
               static_cast<size_t>(task.ranks) * static_cast<size_t>(task.ranks);
  task.wide = comm::accumulator_of(element, op) != element;
  task.mean = op == comm::ReduceOp::mean;
  const size_t part = task.count / static_cast<size_t>(task.ranks);
  for (size_t p = 0; p < static_cast<size_t>(task.ranks); ++p)
    task.parts.push_back({p * part, part});
  task.sends = task.receives = task.parts;
  task.equal_blocks = task.kind == comm::Collective::all_to_all;
  const std::string name =
      asked.algorithm.empty() ? read_selection(asked.selection).choose(task, comm::size_of(element))
                              : asked.algorithm;
  for (task.rank = 0; task.rank < task.ranks; ++task.rank)
    fmt::print("{}", comm::to_string(comm::make_schedule(comm::algorithm_named(name), task)));
  const comm::Steps steps = comm::algorithm_named(name).steps(task);
  fmt::print("formula: {} round(s), {} elements moved by the busiest rank, {} added\n",
             steps.rounds, steps.moved, steps.reduced);
}

}  // namespace tutti::cli
