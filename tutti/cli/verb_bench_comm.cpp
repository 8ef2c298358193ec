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

constexpr std::string_view kFlagAlone =
    "true";  // what CLI11 gives for an option whose value was left out

struct CommVerb {
  std::string collective, algorithm, element = "f32", op = "sum", min = "8", max = "32M",
                                     transport = "auto", nodes = "auto", progress = "0", json,
                                     shape, peers = "all", columns = "nccl", selection, table;
  double factor = 4;
  size_t chunk = 0;
  int ranks = 0, iterations = 20, warmup = 5, checks = 0;
  bool print = false, latency = false, tune = false, overlap = false, shared_output = false,
       check_messages = false;
  std::string moved_by = {};  // how operations are moved forward, once ranks run

  std::vector<comm::Collective> kinds() const {
    return collectives_named(!collective.empty() ? collective : tune ? "all" : "allreduce");
  }
  std::vector<size_t> sizes() const { return sizes_between(min, max, factor); }
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
  CommBenchOptions options{.element = comm::element_named(verb.element),
                           .op = comm::reduce_op_named(verb.op),
                           .algorithm = {},
                           .chunk = verb.chunk,
                           .iterations = verb.iterations,
                           .warmup = verb.warmup,
                           .checks = verb.checks,
                           .shared_output = verb.shared_output,
                           .overlap = verb.overlap};
  for (const OpenPeer& peer : peers) options.peers.push_back(&peer);
  say(communicator, about(communicator, verb));
  if (columns == CommColumns::nccl)
    say(communicator,
        fmt::format("# medians of {} iterations after {} of warm-up, in turns; owners write their "
                    "buffers before every call; memcpy: all ranks at once",
                    verb.iterations, verb.warmup));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  size_t wrong = 0;
  for (const comm::Collective kind : verb.kinds()) {
    options.kind = kind;
    say(communicator, comm_header(columns, options));
    for (const size_t bytes :
         kind == comm::Collective::barrier ? std::vector<size_t>{0} : verb.sizes())
      for (const std::string& algorithm : algorithms_of(verb, kind, communicator)) {
        options.algorithm = algorithm;
        const CommBenchRow row = bench_collective(communicator, options, bytes);
        wrong += row.wrong.value_or(0);
        say(communicator, comm_line(columns, options, row, communicator.size()));
        rows.push_back(comm_json(options, row, communicator.size()));
      }
  }
  if (communicator.rank() == 0 && !verb.json.empty()) replace_file(verb.json, rows.dump(2) + "\n");
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
                                            .element = comm::element_named(verb.element),
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
  const comm::Element element = comm::element_named(verb.element);
  const comm::ReduceOp op = comm::reduce_op_named(verb.op);
  task.count = parse_bytes(verb.max, "-e") / comm::size_of(element) /
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
  verb.kinds(), verb.sizes(), comm::element_named(verb.element), comm::reduce_op_named(verb.op),
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
    if (const auto code = launch_ranks(verb.ranks, {.threads = 1, .progress = verb.progress},
                                       launcher.name == "none" ? 0 : launcher.size))
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

void add_measuring_flags(CLI::App* verb, CommVerb& state) {
  verb->add_option("--collective", state.collective,
                   "barrier, broadcast, reduce, allreduce, reduce_scatter, allgather, gather, "
                   "scatter, all_to_all; several with commas; all. "
                   "Otherwise allreduce; of --tune all");
  verb->add_option("--algorithm", state.algorithm,
                   "A name; `all` for each; otherwise chosen by size, ranks and topology");
  verb->add_option("-d,--type", state.element, "f32, f64, bf16, f16, i8, i32, byte")
      ->capture_default_str();
  verb->add_option("-o,--op", state.op, "sum, min, max, mean")->capture_default_str();
  verb->add_option("-b,--min-bytes", state.min, "Smallest size")->capture_default_str();
  verb->add_option("-e,--max-bytes", state.max, "Largest size")->capture_default_str();
  verb->add_option("-f,--factor", state.factor, "From a size to the next")->capture_default_str();
  verb->add_option("-n,--iterations", state.iterations, "Timed calls of a size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("-w,--warmup", state.warmup, "Calls before them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option_function<std::string>(
          "-c,--check",
          [&state](const std::string& given) {
            state.checks = parse_checks(given == kFlagAlone ? "" : given);
          },
          "Compare N results of each size, peers' too, with plain arithmetic: every element on "
          "every rank. Exit status 1 if one is wrong")
      ->type_name("N")
      ->expected(0, 1);
  verb->add_option("--chunk", state.chunk,
                   "Elements; larger vectors run in chunks. 0: in one piece")
      ->capture_default_str();
}

}  // namespace

RunVerb add_bench_comm(CLI::App& bench) {
  auto state = std::make_shared<CommVerb>();
  CLI::App* verb = bench.add_subcommand("comm",
                                        "Collectives beside memcpy, the MPI library's own, Gloo "
                                        "and oneCCL; columns and flags as nccl-tests");
  verb->add_option("--ranks", state->ranks, "Processes, started with mpirun on this node")
      ->type_name("N")
      ->envname("TUTTI_RANKS")
      ->check(CLI::Range(1, 1 << 20));
  add_measuring_flags(verb, *state);
  verb->add_option("--transport", state->transport,
                   "auto, mpi (no shared memory), threads (ranks are threads of this process)")
      ->check(CLI::IsMember({"auto", "mpi", "threads"}))
      ->capture_default_str();
  verb->add_option("--nodes", state->nodes, "What makes a node, as the key comm.nodes")
      ->envname("TUTTI_COMM_NODES")
      ->check(CLI::IsMember({"auto", "hostname"}))
      ->capture_default_str();
  verb->add_option("--shape", state->shape,
                   "Make every rank's link as slow as this: 10gbit,50us (not peers')");
  verb->add_option("--progress", state->progress,
                   "Progress threads of a rank: a number, or auto as for training")
      ->check(progress_setting_error)
      ->capture_default_str();
  verb->add_flag("--shared-output", state->shared_output,
                 "One output for all ranks, in shared memory, as training sums its gradients "
                 "(allreduce; peers have their own)");
  verb->add_flag(
      "--overlap", state->overlap,
      "Measure how much of a collective's time is hidden when its rank computes meanwhile");
  verb->add_flag(
      "--check-collectives", state->check_messages,
      "Send a checksum with every message and compare results among ranks, as comm.check does");
  verb->add_option(
          "--peers", state->peers,
          "Run in turns with: all (that this build has), none, or some of memcpy,mpi,gloo,oneccl")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_option("--columns", state->columns,
                   "As nccl-tests, or as OSU's benchmarks: average, least and most of the ranks, "
                   "without peers")
      ->check(CLI::IsMember({"nccl", "osu"}))
      ->capture_default_str();
  verb->add_flag("--latency", state->latency,
                 "Instead: half a round trip between ranks 0 and 1, as osu_latency");
  verb->add_option_function<std::string>(
          "--tune",
          [state](const std::string& given) {
            state->tune = true;
            state->table = given == kFlagAlone ? "" : given;
          },
          "Instead: time all algorithms, print times beside prices, and write the table of the "
          "fastest to FILE")
      ->type_name("FILE")
      ->expected(0, 1);
  verb->add_option("--selection", state->selection,
                   "Take algorithms from this table, which --tune wrote [comm.selection]")
      ->type_name("FILE")
      ->envname("TUTTI_COMM_SELECTION");
  verb->add_flag("--print", state->print,
                 "Print the schedule of every rank for -e bytes, and run nothing");
  verb->add_option("-J,--json", state->json, "Write the rows there too")->type_name("FILE");
  for (const char* other : {"--algorithm", "--check", "--chunk", "--peers", "--columns", "--json",
                            "--overlap", "--shared-output", "--print"}) {
    verb->get_option("--tune")->excludes(other);
    verb->get_option("--latency")->excludes(other);
  }
  for (const char* other : {"--tune", "--collective", "--type", "--op"})
    verb->get_option("--latency")->excludes(other);
  return [=] { return run_comm(*state); };
}

}  // namespace tutti
