// matrix threads|tcp|shm|mpi [--ranks A-B] [--counts N,N...] [--types T,T...] [--starts N] [--part
// I/N]
// [--only TEXT] [--nodes auto|hostname] [--placement N,N...]
//                           [--progress N] [--check]
// The acceptance matrix of the communication library; see README.md. The last line is "N cases
// passed"; exit status 1 when one failed.
//
// threads: ranks are threads, 1-9 by default. tcp: threads that talk over TCP, 1-4 by default. shm,
// mpi: under mpirun; groups of A to B of its ranks, all of them by default.
// --placement: the node of each thread; threads share memory only inside a node.
// --part runs the I-th of N shares of the cases, --only those whose name contains TEXT. --progress:
// with N progress threads a rank; --check: with checksums of messages and results.

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <thread>

#include "tests/multirank/matrix_cases.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti {
namespace {

struct Flags {
  std::string transport;
  int first = 0, last = 0;  // ranks; 0: the default
  std::vector<size_t> counts{0, 1, 2, 3, 127, 1000003};
  std::vector<comm::Element> elements{comm::Element::f32,  comm::Element::f64, comm::Element::bf16,
                                      comm::Element::f16,  comm::Element::i8,  comm::Element::i32,
                                      comm::Element::byte, comm::Element::i64, comm::Element::u8};
  int starts = 2;
  uint64_t part = 1, parts = 1;
  std::string only;
  comm::Nodes nodes = comm::Nodes::kernel;
  comm::WireKind wire = comm::WireKind::mpi;
  std::vector<int> placement;  // empty: all threads on one node
  int progress = 0;
  bool check = false;
};

template <class T>
T number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw ConfigError(fmt::format("'{}' is not a number", text));
  return value;
}

// Splits at `separator`; both parts are the whole text if there is none.
std::pair<std::string_view, std::string_view> halves(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, text};
  return {text.substr(0, at), text.substr(at + 1)};
}

template <class Take>
void for_each_item(std::string_view list, Take take) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    take(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

Flags parse(int count, char** words) {
  Flags flags;
  flags.transport = count > 1 ? words[1] : "";
  if (flags.transport != "threads" && flags.transport != "tcp" && flags.transport != "shm" &&
      flags.transport != "mpi")
    throw ConfigError("matrix threads|tcp|shm|mpi FLAG...: see matrix.cpp");
  for (int i = 2; i < count; i += 2) {
    const std::string_view flag = words[i];
    if (flag == "--check") {
      flags.check = true, --i;
      continue;
    }
    if (i + 1 == count) throw ConfigError(fmt::format("{} needs a value", flag));
    const std::string_view value = words[i + 1];
    if (flag == "--ranks") {
      flags.first = number<int>(halves(value, '-').first),
      flags.last = number<int>(halves(value, '-').second);
    } else if (flag == "--counts") {
      flags.counts.clear();
      for_each_item(value,
                    [&](std::string_view item) { flags.counts.push_back(number<size_t>(item)); });
    } else if (flag == "--types") {
      flags.elements.clear();
      for_each_item(value, [&](std::string_view item) {
        flags.elements.push_back(comm::element_named(item));
      });
    } else if (flag == "--starts") {
      flags.starts = number<int>(value);
    } else if (flag == "--part") {
      flags.part = number<uint64_t>(halves(value, '/').first),
      flags.parts = number<uint64_t>(halves(value, '/').second);
    } else if (flag == "--only") {
      flags.only = value;
    } else if (flag == "--progress") {
      flags.progress = static_cast<int>(number<unsigned short>(value));
    } else if (flag == "--placement") {
      for_each_item(value,
                    [&](std::string_view item) { flags.placement.push_back(number<int>(item)); });
      flags.first = flags.last = static_cast<int>(flags.placement.size());
    } else if (flag == "--nodes") {
      flags.nodes = comm::nodes_named(value);
    } else if (flag == "--wire") {
      flags.wire = comm::wire_named(value);
    } else {
      throw ConfigError(fmt::format("no flag is called {}", flag));
    }
  }
  if (flags.counts.empty() || flags.elements.empty() || flags.part < 1 || flags.part > flags.parts)
    throw ConfigError("no counts, no types, or no such part");
  return flags;
}

struct Tally {
  std::atomic<size_t> cases{0}, failed{0};
};

std::vector<MatrixCase> chosen(const Flags& flags, const MatrixAxes& axes) {
  std::vector<MatrixCase> some;
  for (auto* cases_of : {product_cases, bits_cases, special_cases, flight_cases, ahead_cases})
    for (MatrixCase& one : cases_of(axes))
      if (one.name.find(flags.only) != std::string::npos &&
          fnv1a(one.name) % flags.parts == flags.part - 1)
        some.push_back(std::move(one));
  return some;
}

void configure(comm::Communicator& c, const Flags& flags) {
  if (flags.progress > 0) c.set_progress(std::make_shared<comm::Progress>(flags.progress));
  if (flags.check) c.set_check();
}

// Runs on one rank of a group. Wrong elements do not end the run, any other failure does.
void run_cases(comm::Communicator& c, const std::vector<MatrixCase>& cases, const Flags& flags,
               Tally& tally) {
  for (const MatrixCase& one : cases) {
    const auto what = [&] {
      return fmt::format("{} among {} ranks (matrix {} --ranks {} --only '{}')", one.name, c.size(),
                         flags.transport, c.size(), one.name);
    };
    size_t wrong = 0;
    try {
      wrong = one.run(c);
    } catch (const std::exception& error) {
      throw CommError(fmt::format("{}: {}", what(), error.what()));
    }
    if (c.rank() == 0) ++tally.cases;
    if (wrong == 0) continue;
    ++tally.failed;
    std::fprintf(stderr, "%s\n",
                 fmt::format("rank {}: {} wrong in {}", c.rank(), wrong, what()).c_str());
  }
}

MatrixAxes axes_of(const Flags& flags, int ranks) {
  return {.ranks = ranks,
          .counts = flags.counts,
          .elements = flags.elements,
          .windows = flags.transport == "shm",
          .starts = flags.starts};
}

class Progress {
 public:
  void line(int ranks, const std::string& transport, size_t cases) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    fmt::print("{} rank(s), {}: {} cases, {:.1f} s so far\n", ranks, transport, cases, seconds);
    std::fflush(stdout);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Does the same as comm::run_ranks, over connections of each rank's own.
void run_over_tcp(int ranks, const std::function<void(comm::Communicator&)>& work) {
  comm::LocalStore store;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < ranks; ++p)
      threads.emplace_back([&, p] {
        try {
          const auto c = comm::make_store_communicator(
              store, "matrix", p, ranks,
              {.process = {.shared_memory = false, .address = "127.0.0.1"}, .secret = {}});
          work(*c);
        } catch (...) {
          errors[static_cast<size_t>(p)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void run_threads(const Flags& flags, Tally& tally) {
  Progress progress;
  const bool tcp = flags.transport == "tcp";
  const int last = flags.last != 0 ? flags.last : tcp ? 4 : 9;
  for (int ranks = flags.first == 0 ? 1 : flags.first; ranks <= last; ++ranks) {
    MatrixAxes axes = axes_of(flags, ranks);
    axes.node_of = flags.placement;
    const std::vector<MatrixCase> cases = chosen(flags, axes);
    const auto work = [&](comm::Communicator& c) {
      configure(c, flags);
      run_cases(c, cases, flags, tally);
    };
    tcp ? run_over_tcp(ranks, work) : comm::run_ranks(ranks, work, flags.placement);
    progress.line(ranks, flags.transport, cases.size());
  }
}

// The first `ranks` ranks work while the others wait for them.
void run_processes(comm::Communicator& world, const Flags& flags, Tally& tally) {
  Progress progress;
  for (int ranks = flags.first == 0 ? world.size() : flags.first;
       ranks <= (flags.last == 0 ? world.size() : flags.last); ++ranks) {
    const auto group = world.split(world.rank() < ranks ? 0 : 1, world.rank());
    if (world.rank() < ranks) {
      MatrixAxes axes = axes_of(flags, ranks);
      axes.node_of = group->node_of();
      const std::vector<MatrixCase> cases = chosen(flags, axes);
      run_cases(*group, cases, flags, tally);
      if (world.rank() == 0)
        progress.line(ranks,
                      group->transport() +
                          (axes.node_of.empty()
                               ? ""
                               : fmt::format(" among {} nodes", comm::count_nodes(axes.node_of))),
                      cases.size());
    }
    world.barrier();
  }
}

int report(size_t cases, size_t failed) {
  if (failed > 0)
    fmt::print("{} failure(s) in {} cases\n", failed, cases);
  else
    fmt::print("{} cases passed\n", cases);
  return failed > 0 || cases == 0 ? 1 : 0;
}

int run(const Flags& flags) {
  Tally tally;
  if (flags.transport == "threads" || flags.transport == "tcp") {
    run_threads(flags, tally);
    return report(tally.cases, tally.failed);
  }
  using Threads = comm::MpiSession::Threads;
  comm::MpiSession session(flags.progress > 0 ? Threads::multiple : Threads::funneled);
  // The ranks outside a group wait for all of its cases.
  const auto world = session.communicator({.shared_memory = flags.transport == "shm",
                                           .timeout = 3600,
                                           .nodes = flags.nodes,
                                           .wire = flags.wire});
  try {
    configure(*world, flags);
    run_processes(*world, flags, tally);
  } catch (const std::exception& error) {
    world->abort(1, error.what());
  }
  size_t failed = 0;
  for (const size_t f : world->allgather_value(tally.failed.load())) failed += f;
  return world->rank() == 0 ? report(tally.cases, failed) : failed > 0;
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  try {
    return tutti::run(tutti::parse(count, words));
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + '\n').c_str(), stderr);  // in one piece
    tutti::comm::MpiSession::end_job(1);
    return 1;
  }
}
