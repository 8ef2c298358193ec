#include "tutti/comm/bootstrap/launcher.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::comm {
namespace {

using Variables = std::map<std::string, std::string>;

Launcher detect(const Variables& variables) {
  return detect_launcher([&variables](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

TEST(Launcher, NothingSetIsASingleProcess) {
  EXPECT_EQ(detect({}), (Launcher{"none", 0, 1, 0, 1}));
}

TEST(Launcher, Torchrun) {
  EXPECT_EQ(
      detect({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}),
      (Launcher{"torchrun", 5, 8, 1, 4}));
}

const Variables kSrun{{"SLURM_PROCID", "5"},
                      {"SLURM_NTASKS", "99"},
                      {"SLURM_STEP_NUM_TASKS", "7"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_TASKS_PER_NODE", "2(x2),3"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_ID", "0"}};

TEST(Launcher, Srun) {
  EXPECT_EQ(detect(kSrun), (Launcher{"srun", 5, 7, 1, 3})) << "the step's size, not the job's";
  EXPECT_EQ(detect({{"SLURM_PROCID", "3"},
                    {"SLURM_NTASKS", "4"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_NTASKS_PER_NODE", "2"}}),
            (Launcher{"srun", 3, 4, 1, 2}));
}

TEST(Launcher, WhatContradictsItselfLeavesTheRanksOfANodeToMpi) {
  // A heterogeneous job: component 0 has a node with one task, component 1 nodes with two and one.
  struct Rank {
    const char *node, *local, *per_node;
  };
  const Rank ranks[] = {{"0", "0", "1"}, {"1", "0", "2,1"}, {"1", "1", "2,1"}, {"2", "0", "2,1"}};
  for (int rank = 0; rank < 4; ++rank) {
    Variables variables{{"SLURM_PROCID", std::to_string(rank)},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "4"},
                        {"SLURM_NODEID", ranks[rank].node},
                        {"SLURM_LOCALID", ranks[rank].local},
                        {"SLURM_STEP_TASKS_PER_NODE", ranks[rank].per_node}};
    const int local = std::stoi(ranks[rank].local);
    if (rank == 2) {  // without the variable that shows the kind of job
      EXPECT_EQ(detect(variables), (Launcher{"srun", 2, 4, 1, -1}));
    }
    for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
      Variables heterogeneous = variables;
      heterogeneous[name] = "2";
      EXPECT_EQ(detect(heterogeneous), (Launcher{"srun", rank, 4, local, -1})) << name;
    }
  }
  for (const auto& [rank, size, local_rank, local_size] :
       {std::array{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        std::array{"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
        std::array{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        std::array{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                   "JSM_NAMESPACE_LOCAL_SIZE"}}) {
    EXPECT_EQ(detect({{rank, "5"}, {size, "8"}, {local_rank, "2"}, {local_size, "2"}}).local_size,
              -1)
        << rank;
    EXPECT_EQ(detect({{rank, "5"}, {size, "8"}, {local_rank, "2"}, {local_size, "9"}}).local_size,
              -1)
        << rank;
  }
}

TEST(Launcher, SrunWithPmi2IsStillSrun) {
  Variables variables = kSrun;
  variables["PMI_RANK"] = "5";
  variables["PMI_SIZE"] = "7";
  EXPECT_EQ(detect(variables), (Launcher{"srun", 5, 7, 1, 3}));
}

TEST(Launcher, SlurmBatchScriptWithoutAStepIsASingleProcess) {
  EXPECT_EQ(detect({{"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "64"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_JOB_ID", "17"}}),
            Launcher{});
}

TEST(Launcher, OpenMpi) {
  const Variables openmpi{{"OMPI_COMM_WORLD_RANK", "2"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(detect(openmpi), (Launcher{"openmpi", 2, 4, 0, 2}));
  Variables in_slurm = openmpi;  // Slurm's number there is the rank of mpirun's daemon
  in_slurm.insert(kSrun.begin(), kSrun.end());
  EXPECT_EQ(detect(in_slurm).name, "openmpi");
  EXPECT_EQ(detect(in_slurm).rank, 2);
}

TEST(Launcher, MpichAndHydra) {
  EXPECT_EQ(detect({{"PMI_RANK", "3"},
                    {"PMI_SIZE", "4"},
                    {"MPI_LOCALRANKID", "1"},
                    {"MPI_LOCALNRANKS", "2"}}),
            (Launcher{"mpich", 3, 4, 1, 2}));
  EXPECT_EQ(detect({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_RANK", "1"}}),
            (Launcher{"mpich", 3, 4, 1, -1}));
  Variables in_slurm{
      {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  in_slurm.insert(kSrun.begin(), kSrun.end());
  EXPECT_EQ(detect(in_slurm), (Launcher{"mpich", 3, 4, 1, 2}));
}

TEST(Launcher, Pals) {
  EXPECT_EQ(detect({{"PALS_RANKID", "9"},
                    {"PMI_RANK", "9"},
                    {"PMI_SIZE", "12"},
                    {"PALS_LOCAL_RANKID", "3"},
                    {"PALS_LOCAL_SIZE", "6"}}),
            (Launcher{"pals", 9, 12, 3, 6}));
}

TEST(Launcher, Mvapich) {
  EXPECT_EQ(detect({{"MV2_COMM_WORLD_RANK", "1"},
                    {"MV2_COMM_WORLD_SIZE", "2"},
                    {"MV2_COMM_WORLD_LOCAL_RANK", "1"}}),
            (Launcher{"mvapich", 1, 2, 1, -1}));
}

TEST(Launcher, Flux) {
  EXPECT_EQ(detect({{"FLUX_TASK_RANK", "6"},
                    {"FLUX_JOB_SIZE", "8"},
                    {"FLUX_TASK_LOCAL_ID", "2"},
                    {"PMI_RANK", "6"},
                    {"PMI_SIZE", "8"}}),
            (Launcher{"flux", 6, 8, 2, -1}));
}

TEST(Launcher, Jsrun) {
  EXPECT_EQ(detect({{"JSM_NAMESPACE_RANK", "4"},
                    {"JSM_NAMESPACE_SIZE", "6"},
                    {"JSM_NAMESPACE_LOCAL_RANK", "0"},
                    {"OMPI_COMM_WORLD_RANK", "4"},
                    {"OMPI_COMM_WORLD_SIZE", "6"}}),
            (Launcher{"jsrun", 4, 6, 0, -1}));
}

TEST(Launcher, NonsenseNamesTheVariable) {
  EXPECT_TRUE(throws<ConfigError>({"RANK='first'"}, [&] {
    detect({{"RANK", "first"}, {"WORLD_SIZE", "8"}});
  }));
  EXPECT_THROW(detect({{"RANK", "8"}, {"WORLD_SIZE", "8"}}), ConfigError);
  EXPECT_THROW(
      detect({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2(x"}}),
      ConfigError);
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
