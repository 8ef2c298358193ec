#include "tutti/cli/verbs/host_probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tutti/base/scratch_directory.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

TEST(HostProbe, Load) {
  const Load load = parse_load("0.52 0.58 0.59 3/602 1234\n");
  EXPECT_DOUBLE_EQ(load.average, 0.52);
  EXPECT_EQ(load.runnable, 3);
  EXPECT_EQ(parse_load("").runnable, 0);
}

TEST(HostProbe, LaunchersCountOnceHoweverTheyAreNamed) {
  const ScratchDirectory scratch;
  const fs::path& folder = scratch.path();
  for (const char* part : {"a", "b"}) fs::create_directories(folder / part);
  std::ofstream(folder / "a" / "orterun") << "#!/bin/sh\n";
  fs::permissions(folder / "a" / "orterun", fs::perms::owner_all);
  fs::create_symlink("orterun", folder / "a" / "mpirun");
  fs::create_symlink("../a/orterun", folder / "b" / "mpiexec");
  const std::string path = (folder / "a").string() + ":" + (folder / "b").string();
  EXPECT_EQ(mpi_launchers(path).size(), 1u);
  std::ofstream(folder / "b" / "mpirun.mpich") << "#!/bin/sh\n";
  fs::permissions(folder / "b" / "mpirun.mpich", fs::perms::owner_all);
  const auto both = mpi_launchers(path);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(mpi_family(both[0]), "Open MPI");
  EXPECT_EQ(mpi_family(both[1]), "MPICH");
  EXPECT_EQ(mpi_family("mpirun"), "");
}

TEST(HostProbe, SharedMemoryOfThisHost) {
  const SharedMemory memory = probe_shared_memory();
  EXPECT_GE(memory.bytes, memory.free_bytes);
}

}  // namespace
}  // namespace tutti::cli
