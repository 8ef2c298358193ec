#include "tutti/cli/job/launch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"

namespace tutti::cli {
namespace {

using Words = std::vector<std::string>;

device::Topology machine(int cores) {
  device::Topology t;
  t.cores = t.bound_cores = t.hardware_threads = cores;
  return t;
}
const Surroundings kOpenMpi = {.mpirun = "/bin/mpirun", .mpi_library = "Open MPI v4.1.4"};

TEST(Threads, FromFlagThenVariableThenCores) {
  EXPECT_EQ(choose_threads(3, 5, machine(8), 2), 3);
  EXPECT_EQ(choose_threads(0, 5, machine(8), 2), 5);
  EXPECT_EQ(choose_threads(0, 0, machine(8), 2), 4);
  EXPECT_EQ(choose_threads(0, 0, machine(8), 3), 2);
  EXPECT_EQ(choose_threads(0, 0, machine(2), 5), 1);
  device::Topology bound = machine(8);
  bound.bound_cores = 2;  // the launcher bound this rank
  EXPECT_EQ(choose_threads(0, 0, bound, 1), 2);
  bound.bound_cores = 4;  // the launcher bound it to a socket that two ranks share
  EXPECT_EQ(choose_threads(0, 0, bound, 4), 2);
}

TEST(PlanLaunch, BindsWhereThereAreCores) {
  const Launch launch = plan_launch(2, {}, {"/bin/tutti", "train"}, machine(8), kOpenMpi);
  EXPECT_EQ(launch.command, (Words{"/bin/mpirun", "-n", "2", "--map-by", "slot:PE=4", "--bind-to",
                                   "core", "/bin/tutti", "train"}));
  EXPECT_FALSE(launch.oversubscribed);
  EXPECT_EQ(launch.environment, (std::vector<std::pair<std::string, std::string>>{
                                    {"HWLOC_COMPONENTS", "-gl"}, {"OMP_NUM_THREADS", "4"}}));
}

TEST(PlanLaunch, BindsProgressThreadsTooWhereThereAreCores) {
  const auto cores_each = [](const RankThreads& requested, int cores) {
    return plan_launch(2, requested, {"t"}, machine(cores), kOpenMpi).command.at(4);
  };
  EXPECT_EQ(cores_each({.threads = 3, .progress = "auto"}, 8), "slot:PE=4");
  EXPECT_EQ(cores_each({.threads = 1, .progress = "auto"}, 8), "slot:PE=2");
  EXPECT_EQ(cores_each({.threads = 0, .progress = "auto"}, 8), "slot:PE=4");  // all of them compute
  EXPECT_EQ(cores_each({.threads = 2, .progress = "2"}, 8), "slot:PE=4");
  EXPECT_EQ(cores_each({.threads = 3, .progress = "2"}, 8), "slot:PE=3");
  EXPECT_EQ(cores_each({.threads = 3, .progress = "0"}, 8), "slot:PE=3");
}

TEST(PlanLaunch, SaysWhenOversubscribed) {
  Surroundings root = kOpenMpi;
  root.root = true;
  const Launch launch = plan_launch(4, {}, {"t"}, machine(2), root);
  EXPECT_EQ(launch.command, (Words{"/bin/mpirun", "-n", "4", "--allow-run-as-root",
                                   "--oversubscribe", "--bind-to", "none", "t"}));
  EXPECT_TRUE(launch.oversubscribed);
  EXPECT_TRUE(has_text(launch.line, "oversubscribed"));
  EXPECT_EQ(launch.environment.back().first, "OMP_WAIT_POLICY");
}

TEST(PlanLaunch, WithoutANetworkOpenMpiIsToldToTakeTheLoopback) {
  Surroundings alone = kOpenMpi;
  alone.only_loopback = "lo";
  const std::pair<std::string, std::string> setting{"OMPI_MCA_btl_tcp_if_include", "lo"};
  const auto tells = [&](const Surroundings& s) {
    const Launch launch = plan_launch(2, {}, {"t"}, machine(8), s);
    return std::ranges::count(launch.environment, setting);
  };
  EXPECT_EQ(tells(alone), 1);
  EXPECT_EQ(tells(kOpenMpi), 0);
  alone.mpi_library = "MPICH Version: 4.0.2";
  EXPECT_EQ(tells(alone), 0);
}

TEST(PlanLaunch, RespectsTheUsersChoices) {
  Surroundings user = kOpenMpi;
  user.user_binds = true;
  user.hwloc_components = true;
  user.omp_num_threads = 1;
  const Launch launch = plan_launch(2, {}, {"t"}, machine(8), user);
  EXPECT_EQ(launch.command, (Words{"/bin/mpirun", "-n", "2", "t"}));
  EXPECT_TRUE(launch.environment.empty());
  Surroundings sandbox = kOpenMpi;
  sandbox.may_bind = false;
  const Launch unbound = plan_launch(2, {}, {"t"}, machine(8), sandbox);
  EXPECT_EQ(unbound.command, (Words{"/bin/mpirun", "-n", "2", "--bind-to", "none", "t"}));
  EXPECT_TRUE(has_text(unbound.line, "not bound: the system refuses it"));
  EXPECT_EQ(
      with_refused({SYS_sched_setaffinity}, EPERM, [] { return !read_surroundings().may_bind; }),
      0);
  EXPECT_TRUE(read_surroundings().may_bind);
  device::Topology pinned = machine(8);
  pinned.bound_cores = 4;
  const Launch inside = plan_launch(2, {}, {"t"}, pinned, kOpenMpi);
  EXPECT_EQ(std::ranges::count(inside.command, "none"), 1);
  EXPECT_THROW(plan_launch(2, {}, {"t"}, machine(8), Surroundings{}), ConfigError);
}

TEST(PlanLaunch, OtherMpi) {
  const Launch launch =
      plan_launch(2, {}, {"t"}, machine(4),
                  {.mpirun = "/bin/mpiexec", .mpi_library = "MPICH Version: 4.0.2", .root = true});
  EXPECT_EQ(launch.command, (Words{"/bin/mpiexec", "-n", "2", "-bind-to", "core:2", "t"}));
}

TEST(PlanLaunch, TuneIsNotTakenByMpirun) {
  const auto passed = [](const Words& words, const Surroundings& surroundings) {
    const Words all = plan_launch(2, {}, words, machine(4), surroundings).command;
    return Words(std::ranges::find(all, "t"), all.end());
  };
  EXPECT_EQ(passed({"t", "--tune", "a.txt", "-n", "3"}, kOpenMpi),
            (Words{"t", "--tune=a.txt", "-n", "3"}));
  EXPECT_EQ(passed({"t", "--tune", "-n", "3", "--tune"}, kOpenMpi),
            (Words{"t", "--tune=", "-n", "3", "--tune="}));
  EXPECT_EQ(passed({"t", "--tune", "a.txt"},
                   {.mpirun = "/bin/mpiexec", .mpi_library = "MPICH Version: 4.0.2"}),
            (Words{"t", "--tune", "a.txt"}));
}

TEST(PlanLaunch, OpenMpi5HasOtherFlags) {
  const Surroundings five = {.mpirun = "/bin/mpirun", .mpi_library = "Open MPI v5.0.7"};
  EXPECT_EQ(
      plan_launch(4, {}, {"t"}, machine(2), five).command,
      (Words{"/bin/mpirun", "-n", "4", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "t"}));
  EXPECT_EQ(plan_launch(2, {}, {"t"}, machine(8), five).command,
            plan_launch(2, {}, {"t"}, machine(8), kOpenMpi).command);
}

TEST(PlanLaunch, AHomeIsSetWhereThereIsNone) {
  const Words home = {"HOME", "/home/ada"};
  const auto sets_home = [&](const Surroundings& surroundings) {
    const Launch launch = plan_launch(2, {}, {"t"}, machine(8), surroundings);
    return std::ranges::count(launch.environment, std::pair{home[0], home[1]}) == 1;
  };
  Surroundings homeless = kOpenMpi;
  EXPECT_FALSE(sets_home(homeless));
  homeless.home = home[1];
  EXPECT_TRUE(sets_home(homeless));
}

// Sets a variable, or unsets it where the value is null, for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Surroundings, TheUsersBindingIsSeenInEveryLibrarysWords) {
  constexpr std::array kNames = {"OMPI_MCA_hwloc_base_binding_policy",
                                 "OMPI_MCA_rmaps_base_mapping_policy",
                                 "PRTE_MCA_hwloc_default_binding_policy",
                                 "PRTE_MCA_rmaps_default_mapping_policy",
                                 "HYDRA_BINDING",
                                 "I_MPI_PIN"};
  std::vector<std::unique_ptr<Variable>> unset;
  for (const char* name : kNames) unset.push_back(std::make_unique<Variable>(name, nullptr));
  EXPECT_FALSE(read_surroundings().user_binds);
  for (const char* name : kNames) {
    const Variable set(name, "core");
    EXPECT_TRUE(read_surroundings().user_binds) << name;
  }
}

TEST(Surroundings, AHomeIsFoundWhereHomeIsUnset) {
  {
    const Variable home("HOME", "/home/ada");
    EXPECT_EQ(read_surroundings().home, "");
  }
  const Variable home("HOME", nullptr);
  EXPECT_TRUE(read_surroundings().home.starts_with("/"));
}

TEST(PlanLaunch, RefusesAThousandRanksOnTwoCores) {
  EXPECT_EQ(plan_launch(16, {}, {"t"}, machine(2), kOpenMpi).ranks, 16);
  EXPECT_EQ(
      message_of<ConfigError>([&] { plan_launch(1000, {}, {"t"}, machine(2), kOpenMpi); }),
      "--ranks 1000 on 2 cores is more than 8 ranks a core, which only wait for each "
      "other: use fewer ranks, or, with train or study, add --oversubscribe if that is meant");
  EXPECT_EQ(plan_launch(1000, {.oversubscribe = true}, {"t"}, machine(2), kOpenMpi).ranks, 1000);
}

TEST(ThreadsPerCore, AThousandAreRefusedUnlessTheyAreMeant) {
  check_threads_per_core(16, false, machine(2));
  EXPECT_THROW(check_threads_per_core(1000, false, machine(2)), ConfigError);
  check_threads_per_core(1000, true, machine(2));
}

TEST(ChooseThreads, AVariableThatNobodyCanMeanIsBounded) {
  EXPECT_EQ(choose_threads(0, 16, machine(2), 1), 16);
  EXPECT_EQ(choose_threads(1000, 17, machine(2), 1), 1000) << "--threads is looked at elsewhere";
  testing::internal::CaptureStderr();
  EXPECT_EQ(choose_threads(0, 1'000'000'000, machine(2), 1), 16);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      has_text(message, "OMP_NUM_THREADS=1000000000 on 2 cores is more than 8 threads a core"));
  EXPECT_TRUE(has_text(message, "16 are used"));
}

Launch command(Words words) {
  Launch launch;
  launch.command = std::move(words);
  return launch;
}

TEST(RunLaunch, PassesExitCodesAndEnvironment) {
  EXPECT_EQ(run_launch(command({"/bin/sh", "-c", "exit 75"})), 75);
  EXPECT_EQ(run_launch(command({"/bin/sh", "-c", "kill -9 $$"})), 1);
  EXPECT_EQ(run_launch(command({"/no/such/program"})), 127);
  Launch with = command({"/bin/sh", "-c", "test \"$TUTTI_LAUNCH_TEST\" = yes"});
  with.environment = {{"TUTTI_LAUNCH_TEST", "yes"}};
  EXPECT_EQ(run_launch(with), 0);
}

TEST(RunLaunch, UnderTheRealMpirun) {
  const auto run = [](int ranks, const std::string& script) {
    return run_launch(plan_launch(ranks, {.threads = 1}, {"/bin/sh", "-c", script},
                                  device::read_topology(), read_surroundings()));
  };
  EXPECT_EQ(run(2, "test \"$OMP_NUM_THREADS\" = 1"), 0);
  EXPECT_EQ(run(2, "exit 75"), 75);
}

TEST(LaunchRanks, AgreesWithTheLauncher) {
  EXPECT_EQ(launch_ranks(0, {}, 4), std::nullopt);
  EXPECT_EQ(launch_ranks(4, {}, 4), std::nullopt);
  EXPECT_EQ(launch_ranks(1, {}, 0), std::nullopt);
  EXPECT_THROW(launch_ranks(2, {}, 4), ConfigError);
}

TEST(OwnCommand, NamesTheProgram) {
  const Words words = own_command();
  EXPECT_TRUE(has_text(words[0], "tutti_cli_test"));
  EXPECT_EQ(access(words[0].c_str(), X_OK), 0);
}

}  // namespace
}  // namespace tutti::cli
