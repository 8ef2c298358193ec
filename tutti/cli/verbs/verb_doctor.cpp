// tutti doctor: reports the abilities of this machine, or this job, and possible improvements.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/onednn/version.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/process_state.h"
#include "tutti/cli/bench/measure.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/doctor_report.h"
#include "tutti/cli/verbs/host_probe.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/device/cpu/machine_watch.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/train/loop/job_time.h"

namespace tutti::cli {
namespace {

struct DoctorVerb {
  int threads = 0;
  bool measure = true, json = false;
};

/// Facts that a rank knows about itself at first.
struct Self {
  comm::Launcher launcher;
  Surroundings surroundings;
  device::Topology topology;
  int local_ranks = 1, threads = 1;
};

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string bytes_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string caches_text(const device::Topology& t) {
  std::string text;
  for (const device::CacheLevel& cache : t.caches)
    text += fmt::format("{}L{} {} x {}", text.empty() ? "" : ", ", cache.level, cache.instances,
                        bytes_text(cache.bytes));
  return text;
}

void add_processor(Findings& found, const Self& self) {
  const device::Topology& t = self.topology;
  found.add("cpu", t.cpu_model.empty() ? "unknown model" : t.cpu_model, "cpu");
  found.add("topology",
            fmt::format("{} socket(s), {} NUMA node(s), {} core(s), {} hardware thread(s)",
                        t.sockets, t.numa_nodes, t.cores, t.hardware_threads),
            "topology",
            {{"sockets", t.sockets},
             {"numa_nodes", t.numa_nodes},
             {"cores", t.cores},
             {"hardware_threads", t.hardware_threads}});
  found.add("caches", caches_text(t), "caches");
  found.add("affinity",
            fmt::format("processors {} ({} core(s){})", device::affinity_list(), t.bound_cores,
                        t.bound_cores < t.cores ? ", bound" : ", not bound"),
            "bound_cores", t.bound_cores);
  found.add("cpu quota", t.cpu_quota > 0 ? fmt::format("{:.3g} processors", t.cpu_quota) : "none",
            "cpu_quota", t.cpu_quota);
  found.add("threads a rank",
            fmt::format("{} ({} rank(s) on this node{})", self.threads, self.local_ranks,
                        self.surroundings.omp_num_threads > 0
                            ? fmt::format(", OMP_NUM_THREADS={}", self.surroundings.omp_num_threads)
                            : ""),
            "threads", self.threads);
  found.add(
      "vectors",
      fmt::format("built for {} bit, CPU has {} bit, oneDNN uses {}", 8 * built_vector_bytes(),
                  8 * cpu_vector_bytes(), backend::onednn_effective_isa()),
      "vector_bits",
      {{"built", 8 * built_vector_bytes()},
       {"cpu", 8 * cpu_vector_bytes()},
       {"onednn_isa", backend::onednn_effective_isa()}});
  if (built_vector_bytes() > cpu_vector_bytes())
    found.warnings.push_back(
        "the program was built for a newer CPU than this one and will crash: rebuild with "
        "-DTUTTI_MARCH=native here");
  if (built_vector_bytes() < cpu_vector_bytes())
    found.warnings.push_back(
        fmt::format("the program's own kernels use {}-bit vectors, this CPU has {}-bit ones: "
                    "rebuild with -DTUTTI_MARCH=native",
                    8 * built_vector_bytes(), 8 * cpu_vector_bytes()));
  if (self.threads * self.local_ranks > t.usable_cores())
    found.warnings.push_back(
        fmt::format("{} ranks x {} threads exceed {} cores: times will say nothing about scaling",
                    self.local_ranks, self.threads, t.usable_cores()));
  if (t.cpu_quota > 0 && t.cpu_quota < t.cores)
    found.warnings.push_back(
        fmt::format("a control group grants {:.3g} processors on {} cores: ask for whole cores, "
                    "threads beyond it stall",
                    t.cpu_quota, t.cores));
  if (self.threads > t.bound_cores)
    found.warnings.push_back(fmt::format(
        "{} threads share {} bound core(s): change the launcher's binding, or --threads",
        self.threads, t.bound_cores));
  if (const std::string warning = team_warning(t); !warning.empty())
    found.warnings.push_back(warning);
}

/// Only the first rank of a host reports facts that change from moment to moment; ranks of other
/// hosts report them as warnings only.
void add_memory(Findings& found, const Self& self) {
  const device::Topology& t = self.topology;
  found.add("memory", bytes_text(t.memory_bytes), "memory_bytes", t.memory_bytes);
  if (self.launcher.rank == 0)
    found.add("free memory", bytes_text(t.available_bytes), "available_bytes", t.available_bytes);
  const SharedMemory shared = probe_shared_memory();
  found.add(
      "shared memory",
      fmt::format("anonymous {}, /dev/shm {}, copies between processes {}",
                  shared.anonymous ? "usable" : "refused",
                  shared.bytes == 0 ? "absent" : bytes_text(shared.bytes),
                  shared.copy_refused.empty() ? "allowed" : "refused: " + shared.copy_refused),
      "shared_memory",
      {{"anonymous", shared.anonymous},
       {"dev_shm_bytes", shared.bytes},
       {"copy_allowed", shared.copy_refused.empty()}});
  if (self.launcher.rank == 0)
    found.add("/dev/shm free", bytes_text(shared.free_bytes), "dev_shm_free_bytes",
              shared.free_bytes);
  if (!shared.anonymous)
    found.warnings.push_back(
        "processes cannot share memory through memfd and /proc: ranks of one node will exchange "
        "through MPI, which is slower; let all ranks run in one container with its own /proc");
  constexpr int64_t kLittle = int64_t{64} << 20;
  if (shared.free_bytes < kLittle)
    found.warnings.push_back(fmt::format(
        "/dev/shm has {} left, and MPI libraries keep their shared memory there: remove old files, "
        "or start the container with a larger --shm-size",
        bytes_text(shared.free_bytes)));
  const int64_t locked = locked_memory_limit();
  found.add("locked memory", locked < 0 ? "no limit" : "at most " + bytes_text(locked),
            "locked_memory_limit", locked);
  if (locked >= 0 && has_infiniband())
    found.warnings.push_back(
        fmt::format("InfiniBand's drivers lock memory, and only {} may be locked: raise the limit "
                    "(ulimit -l unlimited, or memlock in /etc/security/limits.conf)",
                    bytes_text(locked)));
}

void add_mpi(Findings& found, const Self& self, const MpiProbe& mpi,
             const comm::Communicator* communicator) {
  const comm::Launcher& launcher = self.launcher;
  if (launcher.rank == 0)
    found.add("launcher", launcher.name == "none" ? "none: one process" : launcher.to_string(),
              "launcher", launcher.name);
  found.add("MPI", self.surroundings.mpi_library, "mpi");
  found.add("MPI threads", mpi.threads.empty() ? "MPI does not start: " + mpi.problem : mpi.threads,
            "mpi_threads");
  if (mpi.threads.empty())
    found.warnings.push_back(fmt::format(
        "MPI does not start in this process ({}): several ranks will not work", mpi.problem));
  else if (mpi.threads != "multiple")
    found.warnings.push_back(
        fmt::format("this MPI grants the thread level '{}': comm.progress_threads needs 'multiple'",
                    mpi.threads));
  if (communicator)
    found.add("exchange",
              fmt::format("{} ranks on {} node(s) through {}", communicator->size(),
                          communicator->nodes(), communicator->transport()),
              "exchange",
              {{"ranks", communicator->size()}, {"transport", communicator->transport()}});
  found.add("mpirun", self.surroundings.mpirun.empty() ? "none in PATH" : self.surroundings.mpirun,
            "mpirun");
  if (self.surroundings.mpirun.empty())
    found.warnings.push_back("no mpirun in PATH: --ranks will not work; srun and others still do");
  const char* path = std::getenv("PATH");
  const std::vector<std::string> launchers = mpi_launchers(path ? path : "");
  if (launchers.size() < 2) return;
  found.add("MPI launchers", fmt::format("{}", fmt::join(launchers, ", ")), "mpi_launchers",
            launchers);
  const std::string ours = mpi_family(self.surroundings.mpi_library);
  for (const std::string& program : launchers)
    if (const std::string other = mpi_family(program); !other.empty() && other != ours)
      found.warnings.push_back(
          fmt::format("{} belongs to {}, this program is linked with {}: ranks that it starts do "
                      "not find each other",
                      program, other, self.surroundings.mpi_library));
}

/// Measures alone on rank 0 or on every rank at once: the rates of a job while it computes.
void add_measurements(Findings& found, const Self& self) {
  const device::Topology& t = self.topology;
  const int threads = self.threads;
  if (self.launcher.rank == 0)
    log::info("measuring, which takes 2 seconds where nothing else computes");
  const auto [one, all] = peak_rates(threads, measure_peak_flops);
  int64_t last_level = 0;
  for (const device::CacheLevel& cache : t.caches) last_level = std::max(last_level, cache.bytes);
  const int64_t array = std::clamp<int64_t>(std::min(2 * last_level, t.available_bytes / 8),
                                            int64_t{32} << 20, int64_t{128} << 20);
  const double bandwidth = measure_bandwidth(threads, array);
  if (self.launcher.rank == 0) {
    found.add("peak fp32",
              fmt::format("{:.1f} GFLOP/s on 1 thread{}", one * 1e-9,
                          threads > 1 ? fmt::format(", {:.1f} on {}", all * 1e-9, threads) : ""),
              "peak_fp32_flops", {{"one_thread", one}, {"all_threads", all}});
    found.add(
        "memory bandwidth",
        fmt::format("{:.1f} GB/s on {} thread(s), triad over 3 x {}{}", bandwidth * 1e-9, threads,
                    bytes_text(array), 3 * array < 4 * last_level ? " (partly from cache)" : ""),
        "memory_bandwidth", bandwidth);
  }
  if (const std::string warning = slow_threads_warning(one, all, threads); !warning.empty())
    found.warnings.push_back(warning);
}

/// `use`: of the job's processors since before the measurements, which do not count as other work.
void add_load(Findings& found, const Self& self, const Load& load, const trace::MachineUse& use) {
  const int others = std::max(0, load.runnable - self.local_ranks);
  const auto share = [](double part) {
    return std::isfinite(part) ? fmt::format("{:.0f} %", 100 * part) : std::string("unknown");
  };
  if (self.launcher.rank == 0) {
    found.add("load",
              fmt::format("{:.2f} in the last minute, {} other process(es) want to run",
                          load.average, others),
              "load", {{"last_minute", load.average}, {"others_runnable", others}});
    found.add(
        "this look",
        fmt::format("steal {}, other work {}{}", share(use.steal), share(use.other_work),
                    self.topology.cpu_quota > 0
                        ? fmt::format(", quota used up in {} of its periods", share(use.throttled))
                        : ""),
        "this_look", trace::machine_json(use));
  }
  if (const std::string what = trace::disturbance(use); self.launcher.rank == 0 && !what.empty())
    found.warnings.push_back(
        what +
        ", and what is measured meanwhile says little: wait for other work to end, or ask "
        "for nodes of your own or a larger quota");
  else if (others > 0)  // the average still includes ended work, such as a build
    found.warnings.push_back(
        "other work runs on this machine, and what is measured beside it says little: wait for it, "
        "or ask for nodes of your own");
}

Findings look(const DoctorVerb& verb, const Self& self, const Load& load, const MpiProbe& mpi,
              comm::Communicator* communicator) {
  const device::MachineWatch watch;
  Findings found;
  found.add("version", version_short(), "version");
  found.add("devices", device_text(), "devices");
  add_gpus(found, device::cuda_report());
  found.add("oneDNN", backend::onednn_version(), "onednn");
  found.add("host", host_name(), "host");
  add_mpi(found, self, mpi, communicator);
  add_processor(found, self);
  add_memory(found, self);
  // A wrong build cannot even run the measurement.
  Findings measured;
  if (verb.measure && built_vector_bytes() <= cpu_vector_bytes()) add_measurements(measured, self);
  add_load(found, self, load,
           (communicator ? train::processor_time_of_job(*communicator, watch) : watch.so_far())
               .shares());
  found.append(measured);
  return found;
}

void print(const DoctorVerb& verb, const std::vector<Findings>& ranks) {
  if (verb.json)
    print_json_output(doctor_json(ranks));
  else
    fmt::print("{}", doctor_text(ranks));
}

/// Returns the texts of all ranks, on every rank. Collective.
std::vector<std::string> gather(comm::Communicator& communicator, std::string mine) {
  const auto sizes = communicator.allgather_value(mine.size());
  const size_t most = *std::ranges::max_element(sizes);
  mine.resize(most, ' ');
  std::vector<char> all(most * sizes.size());
  communicator.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank)
    texts.emplace_back(all.data() + rank * most, sizes[rank]);
  return texts;
}

int run_doctor(const DoctorVerb& verb) {
  Self self{.launcher = read_launcher(),
            .surroundings = read_surroundings(),
            .topology = device::read_topology()};
  const Load load = probe_load();  // before this program itself is a load
  self.local_ranks = std::max(1, self.launcher.local_size);
  self.threads = choose_threads(verb.threads, self.surroundings.omp_num_threads, self.topology,
                                self.local_ranks);
  if (self.launcher.name == "none") {
    print(verb, {look(verb, self, load, probe_mpi(), nullptr)});
    return 0;
  }
  check_srun(self.launcher);
  constexpr double kStartSeconds = 60;
  comm::MpiSession session(comm::MpiSession::Threads::multiple, nullptr, nullptr, kStartSeconds);
  const auto communicator = session.communicator();
  const std::string wrong = comm::disagreement(self.launcher, communicator->rank(),
                                               communicator->size(), self.surroundings.mpi_library);
  if (wrong.empty()) self.local_ranks = communicator->local_size();
  const MpiProbe mpi{comm::MpiSession::thread_level(), ""};
  Findings mine = look(verb, self, load, mpi, communicator.get());
  if (!wrong.empty()) mine.warnings.push_back(wrong);
  const auto texts = gather(*communicator, to_text(mine));
  if (communicator->rank() != 0) return 0;
  // If MPI has not joined the processes, the launcher's first one reports for all.
  if (communicator->size() == 1 && self.launcher.rank > 0) return 0;
  std::vector<Findings> ranks;
  for (const std::string& text : texts) ranks.push_back(findings_from(text));
  print(verb, ranks);
  return 0;
}

}  // namespace

Verb doctor_verb() {
  auto state = std::make_shared<DoctorVerb>();  // shared: std::function must be copyable
  return {.name = "doctor",
          .summary = "Report what this machine offers a rank, and what to improve",
          .text =
              "Under a launcher it speaks for the whole job: rank 0 prints, and names the "
              "ranks or hosts that differ.",
          .flags = {flag("--threads", "N", "Threads to measure with. 0: as a rank would choose",
                         &state->threads, {0}),
                    switch_flag("--no-measure", "Leave out the measurements, which take 2 seconds",
                                Clears{&state->measure}),
                    json_flag(state->json)},
          .examples = {{"tutti doctor", "Is this machine ready?"},
                       {"mpirun -n 4 tutti doctor", "Is the job set up as it should be?"}},
          .see_also = {"tutti help bench"},
          .run = [state] { return run_doctor(*state); }};
}

}  // namespace tutti::cli
