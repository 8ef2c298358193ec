#include "tutti/cli/job/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/visible.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/launcher_files.h"
#include "tutti/cli/job/progress.h"
#include "tutti/cli/job/rank_table.h"
#include "tutti/comm/transport/mpi/session.h"

namespace tutti::cli {
namespace {

std::string find_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

// The variables of Open MPI up to 4, Open MPI 5, MPICH and Intel's MPI.
constexpr std::array kBindingVariables = {"OMPI_MCA_hwloc_base_binding_policy",
                                          "OMPI_MCA_rmaps_base_mapping_policy",
                                          "PRTE_MCA_hwloc_default_binding_policy",
                                          "PRTE_MCA_rmaps_default_mapping_policy",
                                          "HYDRA_BINDING",
                                          "I_MPI_PIN"};

/// Sandboxes may refuse binding, and a launcher that should bind ranks then kills them. hwloc asks
/// with a mask of any length, so a mask that is too short proves nothing.
bool may_bind() {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) != 0 || sched_setaffinity(0, sizeof now, &now) == 0;
}

std::string home_of_user() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr && *user->pw_dir != '\0' ? user->pw_dir : "/";
}

/// Returns the loopback's name if no interface is up that could reach another machine.
std::string only_loopback() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, freeifaddrs);
  std::string name;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    const bool internet =
        at->ifa_addr && (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
    if (!internet || !(at->ifa_flags & IFF_UP)) continue;
    if (!(at->ifa_flags & IFF_LOOPBACK)) return "";
    name = at->ifa_name;
  }
  return name;
}

/// Turns the child process into MPI's launcher.
[[noreturn]] void become(const Launch& launch, pid_t parent, int errors, const sigset_t& signals) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent has died meanwhile: that signal will not come
  // Handlers of this program last until exec replaces it; signals that it ignores stay ignored.
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_DFL);
  if (sigismember(&signals, SIGHUP) == 1) std::signal(SIGHUP, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(errors, STDERR_FILENO);
  setpgid(0,
          0);  // so that the terminal's SIGINT reaches only the parent, which decides about it
  if (isatty(STDIN_FILENO)) {  // a background group must not read the terminal; a pipe reaches rank
                               // 0 through mpirun
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
  }
  for (const auto& [name, value] : launch.environment) setenv(name.c_str(), value.c_str(), 1);
  remove_old_session(getpid());
  std::vector<char*> words;
  for (const std::string& word : launch.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  const std::string text =
      fmt::format("tutti: cannot start {}: {}\n", visible(launch.command[0]), std::strerror(errno));
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(126);
  _exit(127);
}

/// Returns 4 for "Open MPI v4.1.4"; 0 for other libraries.
int open_mpi_version(const std::string& library) {
  const size_t at = library.find("Open MPI v");
  if (at == std::string::npos) return library.find("Open MPI") == std::string::npos ? 0 : 4;
  return std::max(1, std::atoi(library.c_str() + at + std::strlen("Open MPI v")));
}

// Open MPI's mpirun takes `--tune FILE` as its own flag anywhere in the command line, but not
// `--tune=FILE`.
std::vector<std::string> with_our_tune(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (size_t i = 0; i < command.size(); ++i) {
    words.push_back(command[i]);
    if (command[i] == "--tune")
      words.back() +=
          i + 1 < command.size() && !command[i + 1].starts_with("-") ? "=" + command[++i] : "=";
  }
  return words;
}

}  // namespace

Surroundings read_surroundings() {
  Surroundings s;
  for (const char* name : {"mpirun", "mpiexec"})
    if (s.mpirun.empty()) s.mpirun = find_in_path(name);
  s.mpi_library = comm::MpiSession::library_version();
  s.root = geteuid() == 0;
  s.user_binds = std::ranges::any_of(kBindingVariables, is_set);
  if (!is_set("HOME")) s.home = home_of_user();
  if (const char* threads = std::getenv("OMP_NUM_THREADS"))
    s.omp_num_threads = static_cast<int>(
        std::clamp<long>(std::strtol(threads, nullptr, 10), 0, std::numeric_limits<int>::max()));
  s.omp_wait_policy = is_set("OMP_WAIT_POLICY");
  s.may_bind = may_bind();
  s.hwloc_components = is_set("HWLOC_COMPONENTS");
  if (!is_set("OMPI_MCA_btl_tcp_if_include") && !is_set("OMPI_MCA_btl_tcp_if_exclude"))
    s.only_loopback = only_loopback();
  return s;
}

int cores_for_ranks(const device::Topology& topology) {
  return std::min(topology.bound_cores, topology.usable_cores());
}

int choose_threads(int requested, int omp_num_threads, const device::Topology& topology,
                   int local_ranks) {
  CHECK(local_ranks > 0);
  if (requested > 0) return requested;
  const int cores = topology.usable_cores(), most = cores * kMostRanksPerCore;
  if (omp_num_threads > most)
    log::warn_once(
        "OMP_NUM_THREADS={} on {} core{} is more than {} threads a core, which only wait for each "
        "other: {} are used",
        omp_num_threads, cores, cores == 1 ? "" : "s", kMostRanksPerCore, most);
  if (omp_num_threads > 0) return std::min(omp_num_threads, most);
  return std::max(1, std::min(topology.cores_of_team(), topology.usable_cores() / local_ranks));
}

std::string team_warning(const device::Topology& topology) {
  if (topology.cores_of_team() >= topology.bound_cores) return "";
  std::vector<std::string> set;
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (const char* value = std::getenv(name)) set.push_back(fmt::format("{}={}", name, value));
  return fmt::format(
      "{} lets compute threads run on {} of the {} cores that this process may use: unset what is "
      "not meant so",
      fmt::join(set, ", "), topology.cores_of_team(), topology.bound_cores);
}

void check_ranks_per_core(int ranks, bool oversubscribe, const device::Topology& topology) {
  const int cores = cores_for_ranks(topology);
  if (oversubscribe || ranks <= cores * kMostRanksPerCore) return;
  throw ConfigError(fmt::format(
      "--ranks {} on {} core{} is more than {} ranks a core, which only wait for each other: use "
      "fewer ranks, or, with train or study, add --oversubscribe if that is meant",
      ranks, cores, cores == 1 ? "" : "s", kMostRanksPerCore));
}

void check_threads_per_core(int threads, bool oversubscribe, const device::Topology& topology) {
  const int cores = topology.usable_cores();  // cores of the node: a launcher may bind a rank
                                              // elsewhere
  if (oversubscribe || threads <= cores * kMostRanksPerCore) return;
  throw ConfigError(fmt::format(
      "run.threads = {} on {} core{} is more than {} threads a core, which only wait for each "
      "other: use fewer threads, or, with train or study, add --oversubscribe if that is meant",
      threads, cores, cores == 1 ? "" : "s", kMostRanksPerCore));
}

Launch plan_launch(int ranks, const RankThreads& requested, const std::vector<std::string>& command,
                   const device::Topology& topology, const Surroundings& surroundings) {
  if (surroundings.mpirun.empty())
    throw ConfigError(
        "--ranks needs mpirun, which is not in PATH: install it (Debian: openmpi-bin), load the "
        "MPI module, or start the ranks with srun");
  Launch launch;
  launch.ranks = ranks;
  check_ranks_per_core(ranks, requested.oversubscribe, topology);
  const int cores = cores_for_ranks(topology);
  // Something else shares out the cores: our binding could use cores that belong to others.
  const bool restricted = cores < topology.cores;
  launch.threads = choose_threads(requested.threads, surroundings.omp_num_threads, topology, ranks);
  launch.oversubscribed = ranks * launch.threads > cores;

  const int progress = count_progress_threads(requested.progress, launch.threads, cores / ranks);
  const int cores_each =
      launch.threads + (ranks * (launch.threads + progress) <= cores ? progress : 0);

  auto& words = launch.command;
  words = {surroundings.mpirun, "-n", std::to_string(ranks)};
  const bool bind = !launch.oversubscribed && !restricted && surroundings.may_bind;
  const int open_mpi = open_mpi_version(surroundings.mpi_library);
  if (open_mpi > 0) {
    if (surroundings.root) words.push_back("--allow-run-as-root");
    // Open MPI 5 has merged the one flag into the other.
    const bool crowded = launch.oversubscribed || restricted;
    if (crowded && open_mpi >= 5)
      words.insert(words.end(), {"--map-by", ":OVERSUBSCRIBE"});
    else if (crowded)
      words.push_back("--oversubscribe");
    if (!surroundings.user_binds && bind)
      words.insert(words.end(),
                   {"--map-by", fmt::format("slot:PE={}", cores_each), "--bind-to", "core"});
    if (!surroundings.user_binds && !bind) words.insert(words.end(), {"--bind-to", "none"});
  } else if (!surroundings.user_binds && bind) {
    words.insert(words.end(), {"-bind-to", fmt::format("core:{}", cores_each)});
  }
  const std::string line = fmt::format("{}", fmt::join(words, " "));
  const std::vector<std::string> passed = open_mpi > 0 ? with_our_tune(command) : command;
  words.insert(words.end(), passed.begin(), passed.end());

  if (!surroundings.home.empty()) launch.environment.emplace_back("HOME", surroundings.home);
  if (!surroundings.hwloc_components) launch.environment.emplace_back("HWLOC_COMPONENTS", "-gl");
  if (open_mpi > 0 && !surroundings.only_loopback.empty())
    launch.environment.emplace_back("OMPI_MCA_btl_tcp_if_include", surroundings.only_loopback);
  if (surroundings.omp_num_threads == 0)
    launch.environment.emplace_back("OMP_NUM_THREADS", std::to_string(launch.threads));
  if (launch.oversubscribed && !surroundings.omp_wait_policy)
    launch.environment.emplace_back("OMP_WAIT_POLICY", "passive");
  launch.line =
      fmt::format("starting {} ranks x {} thread{} on {} core{}{}: {}", ranks, launch.threads,
                  launch.threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
                  launch.oversubscribed    ? " (oversubscribed: times say nothing about scaling)"
                  : !surroundings.may_bind ? " (not bound: the system refuses it)"
                                           : "",
                  line);
  return launch;
}

int run_launch(const Launch& launch, const Patience& patience) {
  const RankTable table(launch.ranks);
  Launch informed = launch;
  informed.environment.emplace_back(kRankTableVariable, table.value());
  const auto refuse = [&] {
    throw DeviceError(fmt::format("cannot start {}: {}", launch.command[0], file_error(errno)));
  };
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) refuse();
  const sigset_t signals = supervised_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);  // a signal between fork and supervise() would be lost
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(informed, parent, errors[1], signals);
  close(errors[1]);
  int code = 0;
  if (child > 0)
    code = supervise({.launcher = child,
                      .output = errors[0],
                      .program = std::filesystem::path(launch.command[0]).filename()},
                     table, patience);
  close(errors[0]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) refuse();
  return code;
}

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  CHECK(!words.empty(), "cannot read /proc/self/cmdline");
  words[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

std::optional<int> launch_ranks(int ranks, const RankThreads& requested, int launcher_size,
                                const Patience& patience) {
  if (launcher_size > 0) {
    if (ranks > 0 && ranks != launcher_size)
      throw ConfigError(
          fmt::format("--ranks {} but the launcher started {} ranks: drop --ranks or change the "
                      "launcher's count",
                      ranks, launcher_size));
    return std::nullopt;
  }
  if (ranks <= 1) return std::nullopt;
  const device::Topology topology = device::read_topology();
  if (const std::string warning = team_warning(topology); !warning.empty())
    log::warn("{}", warning);
  const Launch launch = plan_launch(ranks, requested, own_command(), topology, read_surroundings());
  log::command("{}", launch.line);
  give_back_output();
  return run_launch(launch, patience);
}

}  // namespace tutti::cli
