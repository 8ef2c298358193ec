#include "tutti/device/cuda_library.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/device/cuda_interface.h"

namespace tutti::device {
namespace {

// Stand-ins (cuda/stand_in.cpp): one says that it belongs to this build, the other one does not.
const std::vector<std::string> kOwn = {TUTTI_CUDA_STAND_IN}, kOther = {TUTTI_CUDA_OTHER_STAND_IN};

std::string refusal(const std::vector<std::string>& places, int number = 0) {
  return message_of<DeviceError>([&] { open_cuda_device(number, places); });
}

TEST(CudaLibrary, IsLookedForBesideTheProgramFirst) {
  const std::vector<std::string> places = cuda_library_places();
  ASSERT_EQ(places.size(), 3u);
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(places[0], program.parent_path() / "libtutti_cuda.so");
  EXPECT_TRUE(places[1].starts_with("/") && places[1].ends_with("/libtutti_cuda.so")) << places[1];
  EXPECT_EQ(places[2], "libtutti_cuda.so");
}

TEST(CudaLibrary, SaysWhereItIsNotAndWhatToDo) {
  const std::vector<std::string> places = {"/nowhere/libtutti_cuda.so", "libtutti_cuda_nowhere.so"};
  const std::string text = refusal(places);
  EXPECT_TRUE(has_text(text, "/nowhere/libtutti_cuda.so, libtutti_cuda_nowhere.so"));
  EXPECT_TRUE(has_text(text,
                       "this build has no CUDA part, or its library lies elsewhere. Configure it "
                       "where nvcc is found"));
  const CudaReport report = cuda_report(places);
  EXPECT_EQ(report.problem, text);
  EXPECT_EQ(report.library, "");
}

TEST(CudaLibrary, NamesAFileThatIsNone) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path() / "libtutti_cuda.so";
  std::ofstream(file) << "text";
  EXPECT_TRUE(has_text(refusal({file}), file + " cannot be loaded: "));
}

TEST(CudaLibrary, RefusesThatOfAnotherBuild) {
  const std::string text = refusal(kOther);
  EXPECT_TRUE(has_text(text, kOther[0]));
  EXPECT_TRUE(has_text(text, "another build of Tutti, 0.0.9 000000000000, and this is "));
  EXPECT_TRUE(has_text(text, TUTTI_CUDA_INTERFACE));
  EXPECT_EQ(cuda_report(kOther).problem, text);
  EXPECT_TRUE(cuda_report(kOther).devices.empty());
}

TEST(CudaLibrary, ItsErrorsAreTheProgramsTypes) {
  EXPECT_EQ(refusal({"/nowhere/libtutti_cuda.so", kOwn[0]}, 3), "cuda:3 stands for none");
  EXPECT_THROW(open_cuda_device(0, kOwn), Error);
}

TEST(CudaLibrary, ReportsVersionsAndDevices) {
  const CudaReport report = cuda_report(kOwn);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.library, kOwn[0]);
  EXPECT_EQ(report.driver, "1.2");
  EXPECT_EQ(report.runtime, "3.4");
  EXPECT_EQ(report.libraries, "cuDNN 5.6");
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].name, "stand-in");
}

}  // namespace
}  // namespace tutti::device
