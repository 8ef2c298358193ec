#include "tutti/comm/bootstrap/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::comm {
namespace {

// Finds the launcher in an environment written as words: "RANK=5 WORLD_SIZE=8".
Launcher detect(const std::string& environment) {
  std::map<std::string, std::string> variables;
  std::istringstream words(environment);
  for (std::string word; words >> word;)
    variables[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  return detect_launcher([&variables](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

const std::string kSrun =
    "SLURM_PROCID=5 SLURM_NTASKS=99 SLURM_STEP_NUM_TASKS=7 SLURM_LOCALID=1 "
    "SLURM_TASKS_PER_NODE=2(x2),3 SLURM_NODEID=2 SLURM_STEP_ID=0";
const std::string kHydra = "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2";

TEST(Launcher, IsFoundByItsVariables) {
  const std::pair<std::string, Launcher> launchers[] = {
      {"", {"none", 0, 1, 0, 1}},
      {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", {"torchrun", 5, 8, 1, 4}},
      {kSrun, {"srun", 5, 7, 1, 3}},  // the step's size, not the job's
      {"SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_NTASKS_PER_NODE=2",
       {"srun", 3, 4, 1, 2}},
      {kSrun + " PMI_RANK=5 PMI_SIZE=7", {"srun", 5, 7, 1, 3}},  // srun with PMI2
      // A batch script without a step is a single process.
      {"SLURM_PROCID=0 SLURM_NTASKS=64 SLURM_LOCALID=0 SLURM_JOB_ID=17", {}},
      {kHydra, {"mpich", 3, 4, 1, 2}},
      {kHydra + " " + kSrun, {"mpich", 3, 4, 1, 2}},
      {"PMI_RANK=3 PMI_SIZE=4 PMI_LOCAL_RANK=1", {"mpich", 3, 4, 1, -1}},
      {"PALS_RANKID=9 PMI_RANK=9 PMI_SIZE=12 PALS_LOCAL_RANKID=3 PALS_LOCAL_SIZE=6",
       {"pals", 9, 12, 3, 6}},
      {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=1",
       {"mvapich", 1, 2, 1, -1}},
      {"FLUX_TASK_RANK=6 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=2 PMI_RANK=6 PMI_SIZE=8",
       {"flux", 6, 8, 2, -1}},
      {"JSM_NAMESPACE_RANK=4 JSM_NAMESPACE_SIZE=6 JSM_NAMESPACE_LOCAL_RANK=0 "
       "OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=6",
       {"jsrun", 4, 6, 0, -1}}};
  for (const auto& [environment, launcher] : launchers)
    EXPECT_EQ(detect(environment), launcher) << environment;
}

TEST(Launcher, OpenMpi) {
  const std::string openmpi =
      "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2";
  EXPECT_EQ(detect(openmpi), (Launcher{"openmpi", 2, 4, 0, 2}));
  // Slurm's number there is the rank of mpirun's daemon.
  EXPECT_EQ(detect(openmpi + " " + kSrun), (Launcher{"openmpi", 2, 4, 0, 2}));
}

TEST(Launcher, WhatContradictsItselfLeavesTheRanksOfANodeToMpi) {
  // A heterogeneous job: component 0 has a node with one task, component 1 nodes with two and one.
  struct Rank {
    const char *node, *local, *per_node;
  };
  const Rank ranks[] = {{"0", "0", "1"}, {"1", "0", "2,1"}, {"1", "1", "2,1"}, {"2", "0", "2,1"}};
  for (int rank = 0; rank < 4; ++rank) {
    const auto& [node, local, per_node] = ranks[rank];
    const std::string variables = fmt::format(
        "SLURM_PROCID={} SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_NODEID={} "
        "SLURM_LOCALID={} SLURM_STEP_TASKS_PER_NODE={}",
        rank, node, local, per_node);
    if (rank == 2) {  // without the variable that shows the kind of job
      EXPECT_EQ(detect(variables), (Launcher{"srun", 2, 4, 1, -1}));
    }
    for (const char* more : {" SLURM_HET_SIZE=2", " SLURM_PACK_SIZE=2"})
      EXPECT_EQ(detect(variables + more), (Launcher{"srun", rank, 4, std::stoi(local), -1}))
          << more;
  }
  for (const char* names : {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=2 LOCAL_WORLD_SIZE=",
                            "PALS_RANKID=5 PMI_SIZE=8 PALS_LOCAL_RANKID=2 PALS_LOCAL_SIZE=",
                            "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=",
                            "JSM_NAMESPACE_RANK=5 JSM_NAMESPACE_SIZE=8 JSM_NAMESPACE_LOCAL_RANK=2 "
                            "JSM_NAMESPACE_LOCAL_SIZE="})
    for (const char* local_size : {"2", "9"})
      EXPECT_EQ(detect(std::string(names) + local_size).local_size, -1) << names << local_size;
}

TEST(Launcher, NonsenseNamesTheVariable) {
  EXPECT_TRUE(throws<ConfigError>({"RANK='first'"}, [&] { detect("RANK=first WORLD_SIZE=8"); }));
  EXPECT_THROW(detect("RANK=8 WORLD_SIZE=8"), ConfigError);
  EXPECT_THROW(detect("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_TASKS_PER_NODE=2(x"), ConfigError);
}

TEST(Launcher, SaysWhoIsWho) {
  EXPECT_EQ((Launcher{"flux", 6, 8, 2, -1}.to_string()), "flux: rank 6 of 8, local rank 2 of ?");
}

TEST(Disagreement, SaysBothSizesAndWhatToDo) {
  EXPECT_EQ(disagreement({}, 0, 1, "Open MPI v4.1.4"), "");
  EXPECT_EQ(disagreement({"srun", 1, 2, 1, 2}, 1, 2, "Open MPI v4.1.4"), "");
  const std::string srun = disagreement({"srun", 0, 2, 0, 2}, 0, 1, "Open MPI v4.1.4");
  EXPECT_TRUE(
      has_text(srun,
               "srun says that this process is rank 0 of 2, but Open MPI v4.1.4 says rank 0 "
               "of 1: "));
  EXPECT_TRUE(has_text(srun, "--mpi=pmix"));
  EXPECT_TRUE(has_text(disagreement({"mpich", 1, 2, -1, -1}, 0, 1, "Open MPI"), "another MPI"));
  EXPECT_NE(disagreement({"mpich", 1, 2, -1, -1}, 0, 2, "Open MPI"), "");
}

}  // namespace
}  // namespace tutti::comm
