#include "tutti/comm/bootstrap/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/number.h"

namespace tutti::comm {
namespace {

// Up to two names for each number; the first that is set counts.
struct LauncherRow {
  const char* name;
  std::array<const char*, 2> rank, size, local_rank, local_size;
};

// The more specific launchers come first. jsrun and MVAPICH also set variables of the MPI they are
// built on, and PALS and Flux set PMI's.
constexpr LauncherRow kRows[] = {
    {"torchrun", {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
    {"jsrun",
     {"JSM_NAMESPACE_RANK"},
     {"JSM_NAMESPACE_SIZE"},
     {"JSM_NAMESPACE_LOCAL_RANK"},
     {"JSM_NAMESPACE_LOCAL_SIZE"}},
    {"pals",
     {"PALS_RANKID"},
     {"PALS_SIZE", "PMI_SIZE"},
     {"PALS_LOCAL_RANKID"},
     {"PALS_LOCAL_SIZE"}},
    {"mvapich",
     {"MV2_COMM_WORLD_RANK"},
     {"MV2_COMM_WORLD_SIZE"},
     {"MV2_COMM_WORLD_LOCAL_RANK"},
     {"MV2_COMM_WORLD_LOCAL_SIZE"}},
    {"openmpi",
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {"flux", {"FLUX_TASK_RANK"}, {"FLUX_JOB_SIZE"}, {"FLUX_TASK_LOCAL_ID"}, {}},
    {"mpich",
     {"PMI_RANK"},
     {"PMI_SIZE"},
     {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
     {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}},
};

const char* value_of(const Environment& environment, const char* name) {
  if (name == nullptr) return nullptr;
  const char* value = environment(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

int parse(const char* variable, std::string_view text) {
  int value = -1;
  if (!read_number(text, value) || value < 0)
    throw ConfigError(fmt::format("environment variable {}='{}' should be a number of 0 or more",
                                  variable, text));
  return value;
}

std::optional<int> number(const Environment& environment, std::array<const char*, 2> names) {
  for (const char* name : names)
    if (const char* value = value_of(environment, name)) return parse(name, value);
  return std::nullopt;
}

// Returns the entry of `node` in Slurm's "4(x2),3", which means 4 tasks on each of two nodes, then
// 3; nothing when the text ends before it.
std::optional<int> tasks_on_node(const char* variable, std::string_view text, int node) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view entry = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    int repeat = 1;
    if (const size_t open = entry.find("(x"); open != std::string_view::npos) {
      if (entry.back() != ')')
        throw ConfigError(
            fmt::format("environment variable {} has a malformed entry '{}'", variable, entry));
      repeat = parse(variable, entry.substr(open + 2, entry.size() - open - 3));
      entry = entry.substr(0, open);
    }
    const int tasks = parse(variable, entry);
    if (node < repeat) return tasks;
    node -= repeat;
  }
  return std::nullopt;
}

// The nodes of a heterogeneous job are numbered over all its components, and the tasks per node
// only count the own component's: only MPI knows how many ranks share a node.
int slurm_local_size(const Environment& environment) {
  for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"})
    if (value_of(environment, name)) return -1;
  const int node = number(environment, {"SLURM_NODEID"}).value_or(0);
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
    if (const char* value = value_of(environment, name))
      if (const auto tasks = tasks_on_node(name, value, node)) return *tasks;
  return number(environment, {"SLURM_NTASKS_PER_NODE"}).value_or(-1);
}

std::optional<Launcher> detect_slurm(const Environment& environment) {
  const auto rank = number(environment, {"SLURM_PROCID"});
  const auto size = number(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if (!rank || !size) return std::nullopt;
  // A batch script, or a shell inside an allocation, also has SLURM_PROCID=0 and the job's
  // SLURM_NTASKS, but belongs to no step.
  const bool in_step = value_of(environment, "SLURM_STEP_NUM_TASKS") ||
                       value_of(environment, "SLURM_STEP_ID") ||
                       value_of(environment, "SLURM_STEPID");
  if (*rank == 0 && !in_step) return std::nullopt;
  return Launcher{"srun", *rank, *size, number(environment, {"SLURM_LOCALID"}).value_or(-1),
                  slurm_local_size(environment)};
}

std::optional<Launcher> detect_row(const Environment& environment, const LauncherRow& row) {
  if (!value_of(environment, row.rank[0])) return std::nullopt;
  const auto rank = number(environment, row.rank);
  const auto size = number(environment, row.size);
  if (!rank || !size) return std::nullopt;
  return Launcher{row.name, *rank, *size, number(environment, row.local_rank).value_or(-1),
                  number(environment, row.local_size).value_or(-1)};
}

// Leaves the ranks of a node to MPI where the launcher contradicts itself. A rank beyond the size
// is another case: it may come from variables that are left over from another job.
Launcher checked(Launcher launcher) {
  if (launcher.local_size > launcher.size || launcher.local_rank >= launcher.local_size)
    launcher.local_size = -1;
  if (launcher.rank >= launcher.size)
    throw ConfigError(fmt::format("the launcher's environment variables contradict each other ({})",
                                  launcher.to_string()));
  return launcher;
}

void print_report(std::string_view report) noexcept {
  if (report.empty()) return;
  // glibc writes the output of fprintf to this stream in pieces of 128 bytes, between which other
  // ranks write theirs.
  const std::string line = std::string(report) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);  // an error is ignored: the reader may be gone
}
std::atomic<LastAct> own_last_act{print_report};

}  // namespace

Launcher detect_launcher(const Environment& environment) {
  for (const LauncherRow& row : kRows) {
    // srun --mpi=pmi2 sets PMI's variables beside its own; Hydra inside a Slurm job sets its local
    // rank as well.
    const bool pmi_of_slurm =
        std::string_view(row.name) == "mpich" && !value_of(environment, "MPI_LOCALRANKID");
    if (pmi_of_slurm)
      if (const auto slurm = detect_slurm(environment)) return checked(*slurm);
    if (const auto launcher = detect_row(environment, row)) return checked(*launcher);
  }
  if (const auto slurm = detect_slurm(environment)) return checked(*slurm);
  return {};
}

std::string Launcher::to_string() const {
  const auto known = [](int value) { return value < 0 ? std::string("?") : std::to_string(value); };
  return fmt::format("{}: rank {} of {}, local rank {} of {}", name, rank, size, known(local_rank),
                     known(local_size));
}

std::string disagreement(const Launcher& launcher, int mpi_rank, int mpi_size,
                         const std::string& mpi_library) {
  if (launcher.name == "none") return "";
  if (launcher.rank == mpi_rank && launcher.size == mpi_size) return "";
  const std::string advice =
      launcher.name == "srun"
          ? "srun and MPI have no common process manager interface: try srun --mpi=pmix (srun "
            "--mpi=list names what there is), or start with mpirun inside the allocation"
          : "this program was built with another MPI than that launcher belongs to: start it with "
            "the mpirun of this MPI (tutti --version names it; type -a mpirun lists what is in "
            "PATH), or unset the launcher's variables if they are left over";
  return fmt::format("{} says that this process is rank {} of {}, but {} says rank {} of {}: {}",
                     launcher.name, launcher.rank, launcher.size, mpi_library, mpi_rank, mpi_size,
                     advice);
}

void end_with_launcher() {
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);  // it died in between: the signal will not come
}

void set_last_act(LastAct act) { own_last_act = act; }

void do_last_act(std::string_view report) noexcept { own_last_act.load()(report); }

}  // namespace tutti::comm
