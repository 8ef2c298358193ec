// tutti doctor: what this machine offers a rank, and whether the build fits it.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/version.h"
#include "tutti/cli/config.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/measure.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/comm/launcher.h"
#include "tutti/device/cpu/topology.h"

namespace tutti {
namespace {

struct DoctorVerb {
  int threads = 0;
  bool measure = true;
};

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

void row(std::string_view name, const std::string& value) { fmt::print("{:<16} {}\n", name, value); }

std::string caches_text(const Topology& t) {
  std::string text;
  for (const CacheLevel& cache : t.caches)
    text += fmt::format("{}L{} {} x {}", text.empty() ? "" : ", ", cache.level, cache.instances, bytes_text(static_cast<double>(cache.bytes)));
  return text;
}

/// What keeps this machine or this job from its best; each says what to do.
std::vector<std::string> warnings(const Topology& t, const Surroundings& s, int threads, int local_ranks) {
  std::vector<std::string> found;
  if (built_vector_bytes() > cpu_vector_bytes())
    found.push_back("the program was built for a newer CPU than this one and will crash: rebuild with -DTUTTI_MARCH=native here");
  if (built_vector_bytes() < cpu_vector_bytes())
    found.push_back(fmt::format("the program's own kernels use {}-bit vectors, this CPU has {}-bit ones: rebuild with -DTUTTI_MARCH=native",
                                8 * built_vector_bytes(), 8 * cpu_vector_bytes()));
  if (threads * local_ranks > t.usable_cores())
    found.push_back(fmt::format("{} ranks x {} threads exceed {} cores: times will say nothing about scaling", local_ranks, threads, t.usable_cores()));
  if (t.cpu_quota > 0 && t.cpu_quota < t.cores)
    found.push_back(fmt::format("the control group grants {:.3g} processors on {} cores: ask for whole cores, threads beyond it stall", t.cpu_quota, t.cores));
  if (threads > t.bound_cores)
    found.push_back(fmt::format("{} threads share {} bound core(s): change the launcher's binding, or --threads", threads, t.bound_cores));
  if (s.mpirun.empty()) found.push_back("no mpirun in PATH: --ranks will not work; srun and others still do");
  return found;
}

int run_doctor(const DoctorVerb& verb) {
  const comm::Launcher launcher = read_launcher();
  const Surroundings surroundings = read_surroundings();
  const Topology t = read_topology();
  const int local_ranks = std::max(1, launcher.local_size);
  const int threads = choose_threads(verb.threads, surroundings.omp_num_threads, t, local_ranks);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);

  fmt::print("{}\n", version_text());
  row("host", host.data());
  row("launcher", launcher.to_string());
  row("mpirun", surroundings.mpirun.empty() ? "none in PATH" : surroundings.mpirun);
  row("cpu", t.cpu_model.empty() ? "unknown model" : t.cpu_model);
  row("topology", fmt::format("{} socket(s), {} NUMA node(s), {} core(s), {} hardware thread(s)", t.sockets, t.numa_nodes, t.cores, t.hardware_threads));
  row("caches", caches_text(t));
  row("memory", fmt::format("{}, {} available", bytes_text(static_cast<double>(t.memory_bytes)), bytes_text(static_cast<double>(t.available_bytes))));
  row("affinity", fmt::format("processors {} ({} core(s){})", affinity_list(), t.bound_cores, t.bound_cores < t.cores ? ", bound" : ", not bound"));
  row("cpu quota", t.cpu_quota > 0 ? fmt::format("{:.3g} processors", t.cpu_quota) : "none");
  row("threads a rank", fmt::format("{} ({} rank(s) on this node{})", threads, local_ranks,
                                    surroundings.omp_num_threads > 0 ? fmt::format(", OMP_NUM_THREADS={}", surroundings.omp_num_threads) : ""));
  row("vectors", fmt::format("built for {} bit, CPU has {} bit, oneDNN uses {}", 8 * built_vector_bytes(), 8 * cpu_vector_bytes(), onednn_effective_isa()));
  // A wrong build cannot even run the measurement.
  if (verb.measure && built_vector_bytes() <= cpu_vector_bytes()) {
    const double one = measure_peak_flops(1), all = threads > 1 ? measure_peak_flops(threads) : one;
    row("peak fp32", fmt::format("{:.1f} GFLOP/s on 1 thread, {:.1f} on {}", one * 1e-9, all * 1e-9, threads));
    int64_t last_level = 0;
    for (const CacheLevel& cache : t.caches) last_level = std::max(last_level, cache.bytes);
    const int64_t array = std::clamp<int64_t>(std::min(2 * last_level, t.available_bytes / 8), int64_t{32} << 20, int64_t{128} << 20);
    row("memory bandwidth", fmt::format("{:.1f} GB/s on {} thread(s), triad over 3 x {}{}", measure_bandwidth(threads, array) * 1e-9, threads,
                                        bytes_text(static_cast<double>(array)), 3 * array < 4 * last_level ? " (partly from cache)" : ""));
  }
  const auto found = warnings(t, surroundings, threads, local_ranks);
  for (const std::string& warning : found) row("WARNING", warning);
  if (found.empty()) row("verdict", "nothing to improve");
  return 0;
}

}  // namespace

RunVerb add_doctor(CLI::App& verb) {
  auto state = std::make_shared<DoctorVerb>();  // shared: std::function must be copyable
  verb.add_option("--threads", state->threads, "Threads to measure with. 0: as a rank would choose")->type_name("N");
  verb.add_flag("!--no-measure", state->measure, "Leave out the measurements (2 s)");
  return [state] { return run_doctor(*state); };
}

}  // namespace tutti
