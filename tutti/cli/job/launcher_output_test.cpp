#include "tutti/cli/job/launcher_output.h"

#include <gtest/gtest.h>

namespace tutti::cli {
namespace {

const std::string kLine(74, '-');
const std::string kBanner = kLine + "\nPrimary job  terminated normally, but 1 process returned\n" +
                            "a non-zero exit code.\n" + kLine + "\n";

struct Outcome {
  std::string printed, held;
};

// The bytes may be cut anywhere.
Outcome read_in_parts(const std::string& bytes, size_t part) {
  Outcome out;
  LauncherOutput output([&](std::string_view text) { out.printed += text; });
  for (size_t at = 0; at < bytes.size(); at += part) output.take(bytes.substr(at, part));
  out.held = output.finish();
  return out;
}

TEST(LauncherOutput, HoldsBannersAndPassesTheRest) {
  const std::string error = "[vm:4711] PMIX ERROR: UNREACHABLE in file ptl_tcp.c at line 12\n";
  for (const size_t part : {1, 7, 10000}) {
    const Outcome out =
        read_in_parts("02:03:04 loss 1\n" + kBanner + "02:03:05 loss 2\n" + error, part);
    EXPECT_EQ(out.printed, "02:03:04 loss 1\n02:03:05 loss 2\n");
    EXPECT_EQ(out.held, kBanner + error);
  }
}

TEST(LauncherOutput, HoldsWhatOpenMpi5SaysOutsideAFrame) {
  const std::string tcp =
      "[vm][[53069,1],0][../opal/mca/btl/tcp/btl_tcp_proc.c:266:create_interface_graph] Unable to "
      "find reachable pairing between local and remote interfaces\n";
  const std::string more = "3 more processes have sent help message help-mpi-api.txt / mpi-abort\n";
  for (const size_t part : {1, 7, 10000}) {
    const Outcome out = read_in_parts(tcp + "3 epochs\n" + more + "3 more processes run\n", part);
    EXPECT_EQ(out.printed, "3 epochs\n3 more processes run\n");
    EXPECT_EQ(out.held, tcp + more);
  }
}

TEST(LauncherOutput, PassesWhatOnlyLooksLikeABanner) {
  std::string table = kLine + "\n";
  for (int i = 0; i < 200; ++i) table += "row\n";
  EXPECT_EQ(read_in_parts(table, 10000).printed, table);
  EXPECT_EQ(read_in_parts(kLine + "\nnot finished", 5).printed, kLine + "\nnot finished");
  EXPECT_EQ(read_in_parts("--- short ---\n", 1).printed, "--- short ---\n");
}

TEST(LauncherOutput, ShowsALineThatIsNeverEndedAtOnce) {
  std::string printed;
  LauncherOutput output([&](std::string_view text) { printed += text; });
  output.take(" 12% [##...");
  EXPECT_EQ(printed, " 12% [##...");
  output.take("]");
  output.take("13%\n" + kBanner);
  EXPECT_EQ(printed, " 12% [##...]13%\n");
}

TEST(LauncherOutput, LeavesOutTheZeroOfOpenMpi5) {
  for (const size_t part : {1, 7, 10000}) {
    const Outcome out = read_in_parts("one\n" + std::string(1, '\0') + "tutti: two\n", part);
    EXPECT_EQ(out.printed, "one\ntutti: two\n");
  }
}

TEST(LauncherOutput, ControlBytesOfNamesAreShownAndNotObeyed) {
  const std::string folder = "TMPDIR '/tmp/\x1b[2J\x07\u00e9'\n",
                    shown = "TMPDIR '/tmp/\\x1b[2J\\x07\u00e9'\n";
  for (const size_t part : {1, 7, 10000}) {
    const Outcome out = read_in_parts(
        folder + kLine + "\n" + folder + kLine + "\n" + "mpirun: " + folder + "cut \xe2\x80", part);
    EXPECT_EQ(out.printed, shown + "cut \\xe2\\x80");
    EXPECT_EQ(out.held, kLine + "\n" + shown + kLine + "\n" + "mpirun: " + shown);
  }
}

}  // namespace
}  // namespace tutti::cli
