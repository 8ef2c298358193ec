// tutti doctor: what this machine offers a rank, and whether the build fits it.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
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
  bool measure = true, json = false;
};

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

/// The facts in the order they are found: lines for people, or one JSON object for programs.
class Report {
 public:
  explicit Report(bool as_json) : as_json_(as_json) {}

  /// `title` and `text` for people, `key` and `value` for programs.
  void add(std::string_view title, const std::string& text, const std::string& key,
           nlohmann::ordered_json value) {
    if (!as_json_) fmt::print("{:<16} {}\n", title, text);
    facts_[key] = std::move(value);
  }
  void add(std::string_view title, const std::string& text, const std::string& key) {
    add(title, text, key, text);
  }
  void finish() const {
    if (as_json_) fmt::print("{}\n", facts_.dump(2));
  }

 private:
  bool as_json_;
  nlohmann::ordered_json facts_;
};

std::string caches_text(const Topology& t) {
  std::string text;
  for (const CacheLevel& cache : t.caches)
    text += fmt::format("{}L{} {} x {}", text.empty() ? "" : ", ", cache.level, cache.instances,
                        bytes_text(static_cast<double>(cache.bytes)));
  return text;
}

/// What keeps this machine or this job from its best; each says what to do.
std::vector<std::string> warnings(const Topology& t, const Surroundings& s, int threads,
                                  int local_ranks) {
  std::vector<std::string> found;
  if (built_vector_bytes() > cpu_vector_bytes())
    found.push_back(
        "the program was built for a newer CPU than this one and will crash: rebuild with "
        "-DTUTTI_MARCH=native here");
  if (built_vector_bytes() < cpu_vector_bytes())
    found.push_back(
        fmt::format("the program's own kernels use {}-bit vectors, this CPU has {}-bit ones: "
                    "rebuild with -DTUTTI_MARCH=native",
                    8 * built_vector_bytes(), 8 * cpu_vector_bytes()));
  if (threads * local_ranks > t.usable_cores())
    found.push_back(
        fmt::format("{} ranks x {} threads exceed {} cores: times will say nothing about scaling",
                    local_ranks, threads, t.usable_cores()));
  if (t.cpu_quota > 0 && t.cpu_quota < t.cores)
    found.push_back(
        fmt::format("the control group grants {:.3g} processors on {} cores: ask for whole cores, "
                    "threads beyond it stall",
                    t.cpu_quota, t.cores));
  if (threads > t.bound_cores)
    found.push_back(fmt::format(
        "{} threads share {} bound core(s): change the launcher's binding, or --threads", threads,
        t.bound_cores));
  if (s.mpirun.empty())
    found.push_back("no mpirun in PATH: --ranks will not work; srun and others still do");
  return found;
}

void add_measurements(Report& report, const Topology& t, int threads) {
  const double one = measure_peak_flops(1), all = threads > 1 ? measure_peak_flops(threads) : one;
  report.add(
      "peak fp32",
      fmt::format("{:.1f} GFLOP/s on 1 thread, {:.1f} on {}", one * 1e-9, all * 1e-9, threads),
      "peak_fp32_flops", {{"one_thread", one}, {"all_threads", all}});
  int64_t last_level = 0;
  for (const CacheLevel& cache : t.caches) last_level = std::max(last_level, cache.bytes);
  const int64_t array = std::clamp<int64_t>(std::min(2 * last_level, t.available_bytes / 8),
                                            int64_t{32} << 20, int64_t{128} << 20);
  const double bandwidth = measure_bandwidth(threads, array);
  report.add("memory bandwidth",
             fmt::format("{:.1f} GB/s on {} thread(s), triad over 3 x {}{}", bandwidth * 1e-9,
                         threads, bytes_text(static_cast<double>(array)),
                         3 * array < 4 * last_level ? " (partly from cache)" : ""),
             "memory_bandwidth", bandwidth);
}

int run_doctor(const DoctorVerb& verb) {
  const comm::Launcher launcher = read_launcher();
  const Surroundings surroundings = read_surroundings();
  const Topology t = read_topology();
  const int local_ranks = std::max(1, launcher.local_size);
  const int threads = choose_threads(verb.threads, surroundings.omp_num_threads, t, local_ranks);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);

  Report report(verb.json);
  if (!verb.json) fmt::print("{}\n", version_text());
  report.add("host", host.data(), "host");
  if (verb.json) report.add("", version_short(), "version");
  report.add("launcher", launcher.to_string(), "launcher", launcher.name);
  report.add("mpirun", surroundings.mpirun.empty() ? "none in PATH" : surroundings.mpirun,
             "mpirun");
  report.add("MPI", surroundings.mpi_library, "mpi");
  report.add("oneDNN", onednn_version(), "onednn");
  report.add("cpu", t.cpu_model.empty() ? "unknown model" : t.cpu_model, "cpu");
  report.add("topology",
             fmt::format("{} socket(s), {} NUMA node(s), {} core(s), {} hardware thread(s)",
                         t.sockets, t.numa_nodes, t.cores, t.hardware_threads),
             "topology",
             {{"sockets", t.sockets},
              {"numa_nodes", t.numa_nodes},
              {"cores", t.cores},
              {"hardware_threads", t.hardware_threads}});
  report.add("caches", caches_text(t), "caches");
  report.add("memory",
             fmt::format("{}, {} available", bytes_text(static_cast<double>(t.memory_bytes)),
                         bytes_text(static_cast<double>(t.available_bytes))),
             "memory_bytes", t.memory_bytes);
  report.add("affinity",
             fmt::format("processors {} ({} core(s){})", affinity_list(), t.bound_cores,
                         t.bound_cores < t.cores ? ", bound" : ", not bound"),
             "bound_cores", t.bound_cores);
  report.add("cpu quota", t.cpu_quota > 0 ? fmt::format("{:.3g} processors", t.cpu_quota) : "none",
             "cpu_quota", t.cpu_quota);
  report.add("threads a rank",
             fmt::format("{} ({} rank(s) on this node{})", threads, local_ranks,
                         surroundings.omp_num_threads > 0
                             ? fmt::format(", OMP_NUM_THREADS={}", surroundings.omp_num_threads)
                             : ""),
             "threads", threads);
  report.add("vectors",
             fmt::format("built for {} bit, CPU has {} bit, oneDNN uses {}",
                         8 * built_vector_bytes(), 8 * cpu_vector_bytes(), onednn_effective_isa()),
             "vector_bits",
             {{"built", 8 * built_vector_bytes()},
              {"cpu", 8 * cpu_vector_bytes()},
              {"onednn_isa", onednn_effective_isa()}});
  // A wrong build cannot even run the measurement.
  if (verb.measure && built_vector_bytes() <= cpu_vector_bytes())
    add_measurements(report, t, threads);
  const auto found = warnings(t, surroundings, threads, local_ranks);
  std::string verdict = found.empty() ? "nothing to improve" : "";
  for (const std::string& warning : found)
    verdict += (verdict.empty() ? "" : fmt::format("\n{:<16} ", "")) + warning;
  report.add(found.empty() ? "verdict" : "WARNING", verdict, "warnings", found);
  report.finish();
  return 0;
}

}  // namespace

RunVerb add_doctor(CLI::App& verb) {
  auto state = std::make_shared<DoctorVerb>();  // shared: std::function must be copyable
  verb.add_option("--threads", state->threads, "Threads to measure with. 0: as a rank would choose")
      ->type_name("N");
  verb.add_flag("!--no-measure", state->measure, "Leave out the measurements (2 s)");
  verb.add_flag("--json", state->json, "One JSON object instead of lines");
  return [state] { return run_doctor(*state); };
}

}  // namespace tutti
