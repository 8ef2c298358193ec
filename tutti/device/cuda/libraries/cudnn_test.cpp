// cuDNN without a GPU: what it offers for devices that tests/gpu/devices/ describes.

#include "tutti/device/cuda/libraries/cudnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/cuda/libraries/opened_library.h"

namespace tutti::device {
namespace {

constexpr LibraryType kTypes[] = {LibraryType::f32, LibraryType::tf32, LibraryType::bf16,
                                  LibraryType::f16};
constexpr LayerProduct kProducts[] = {LayerProduct::y, LayerProduct::x, LayerProduct::w};

Cudnn described(const std::string& device) {
  std::ifstream file(std::string(TUTTI_DEVICES "/") + device + ".json");
  return Cudnn({.words = device, .properties = {std::istreambuf_iterator(file), {}}});
}

/// Returns one of ResNet-44's.
LibraryConvolution residual(LayerProduct makes, LibraryType type) {
  return {.makes = makes,
          .type = type,
          .samples = 128,
          .inputs = 16,
          .outputs = 16,
          .in = {32, 32},
          .out = {32, 32},
          .window = {3, 3},
          .stride = {1, 1},
          .dilation = {1, 1},
          .pad_low = {1, 1},
          .pad_high = {1, 1}};
}

int64_t offered(const std::vector<LibraryWay>& ways) {
  return std::ranges::count(ways, std::string(), &LibraryWay::refusal);
}

TEST(OpenedLibrary, SaysWhatIsMissing) {
  OpenedLibrary nothing("libtutti_nothing.so.1");
  EXPECT_TRUE(has_text(nothing.problem(), "libtutti_nothing.so.1 cannot be loaded"));
  EXPECT_TRUE(has_text(nothing.problem(), "LD_LIBRARY_PATH"));
  OpenedLibrary other("libm.so.6");
  double (*function)(double) = nullptr;
  other.find("sqrt", function);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(other.problem(), "");
  other.find("cudnnCreate", function);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(other.problem(), "libm.so.6 has no cudnnCreate: another version is needed");
}

TEST(Cudnn, SaysItsVersion) {
  EXPECT_TRUE(has_text(described("h100").version(), "cuDNN 9."));
  EXPECT_TRUE(has_text(Cudnn({.words = "nothing", .properties = "{}"}).version(),
                       "no cuDNN: nothing: cuDNN, reading the description"));
}

TEST(Cudnn, OffersWaysForAResidualNetworkOnEachDevice) {
  for (const std::string device : {"a100", "h100", "h200"}) {
    Cudnn cudnn = described(device);
    for (const LibraryType type : kTypes)
      for (const LayerProduct makes : kProducts) {
        const std::vector<LibraryWay> ways = cudnn.ways(residual(makes, type));
        EXPECT_GT(offered(ways), 0) << device;
        std::set<std::string> names;
        for (const LibraryWay& way : ways) {
          EXPECT_TRUE(way.name.starts_with("cudnn:eng")) << way.name;
          EXPECT_TRUE(names.insert(way.name).second) << way.name << " comes twice";
        }
      }
  }
}

TEST(Cudnn, RefusesTensorCoresForF32AndOffersThemForTf32) {
  Cudnn cudnn = described("h100");
  int rounded = 0;
  for (const LayerProduct makes : kProducts) {
    const std::vector<LibraryWay> exact = cudnn.ways(residual(makes, LibraryType::f32));
    const std::vector<LibraryWay> fast = cudnn.ways(residual(makes, LibraryType::tf32));
    for (const LibraryWay& way : exact) {
      if (way.refusal != "tensor cores round f32 to tf32") continue;
      const auto same = std::ranges::find(fast, way.name, &LibraryWay::name);
      if (same == fast.end()) continue;
      ++rounded;
      EXPECT_EQ(same->refusal, "") << way.name;
    }
    EXPECT_GT(offered(fast), offered(exact));
  }
  EXPECT_GT(rounded, 10);
}

TEST(Cudnn, RefusesWhatIsNotDeterministicOrSumsInLessThanF32) {
  Cudnn cudnn = described("h100");
  const auto refused = [&](LayerProduct makes, LibraryType type, const std::string& reason) {
    return std::ranges::count(cudnn.ways(residual(makes, type)), reason, &LibraryWay::refusal);
  };
  EXPECT_GT(refused(LayerProduct::w, LibraryType::tf32, "not deterministic"), 0);
  EXPECT_GT(refused(LayerProduct::w, LibraryType::f16, "sums of less than f32"), 0);
}

TEST(Cudnn, FindsAWayByItsName) {
  Cudnn cudnn = described("a100");
  for (const LibraryType type : kTypes)
    for (const LayerProduct makes : kProducts) {
      const LibraryConvolution convolution = residual(makes, type);
      for (const LibraryWay& way : cudnn.ways(convolution)) {
        const LibraryWay found = cudnn.way(convolution, way.name);
        EXPECT_EQ(found.name, way.name);
        EXPECT_EQ(found.refusal, way.refusal) << way.name;
        EXPECT_EQ(found.workspace_bytes, way.workspace_bytes) << way.name;
      }
    }
}

TEST(Cudnn, SaysWhichNamesItDoesNotKnow) {
  Cudnn cudnn = described("h100");
  const LibraryConvolution convolution = residual(LayerProduct::y, LibraryType::bf16);
  for (const std::string name :
       {"", "cudnn:eng", "cublaslt:1", "cudnn:eng0 k2", "cudnn:eng0 k2=1 "})
    EXPECT_TRUE(throws<DeviceError>({"is no way of cuDNN's"}, [&] {
      cudnn.way(convolution, name);
    })) << name;
  EXPECT_TRUE(throws<DeviceError>({"cuDNN, taking an engine"},
                                  [&] { cudnn.way(convolution, "cudnn:eng9999"); }));
  const std::string offered = cudnn.ways(convolution).front().name;
  EXPECT_TRUE(throws<DeviceError>({"its device is a description"},
                                  [&] { cudnn.call(convolution, offered); }));
}

TEST(Cudnn, TakesThreeDimensionsGroupsStepsAndUnevenPadding) {
  Cudnn cudnn = described("h100");
  const LibraryConvolution volume = {.spatial = 3,
                                     .samples = 2,
                                     .inputs = 16,
                                     .outputs = 32,
                                     .in = {16, 16, 16},
                                     .out = {16, 16, 16},
                                     .window = {2, 2, 2},
                                     .stride = {1, 1, 1},
                                     .dilation = {1, 1, 1},
                                     .pad_low = {0, 0, 0},
                                     .pad_high = {1, 1, 1}};
  LibraryConvolution parted = residual(LayerProduct::y, LibraryType::f32);
  parted.groups = 4;
  parted.stride = {2, 2};
  parted.dilation = {3, 1};
  parted.out = {14, 16};
  for (LibraryConvolution convolution : {volume, parted})
    for (const LibraryType type : kTypes)
      for (const LayerProduct makes : kProducts) {
        convolution.type = type;
        convolution.makes = makes;
        EXPECT_GT(offered(cudnn.ways(convolution)), 0)
            << convolution.spatial << " " << static_cast<int>(type) << static_cast<int>(makes);
      }
}

TEST(Cudnn, RefusesWhatIsNoConvolution) {
  Cudnn cudnn = described("h100");
  const auto refusal = [&](const LibraryConvolution& convolution) {
    const std::vector<LibraryWay> ways = cudnn.ways(convolution);
    EXPECT_EQ(ways.size(), 1u);
    EXPECT_EQ(ways.front().name, "");
    return ways.front().refusal;
  };
  EXPECT_TRUE(has_text(refusal({}), "cuDNN, describing"));
  LibraryConvolution wrong = residual(LayerProduct::x, LibraryType::bf16);
  wrong.out = {31, 32};
  EXPECT_TRUE(has_text(refusal(wrong), "cuDNN, describing the product"));
  wrong = residual(LayerProduct::w, LibraryType::f32);
  wrong.samples = -1;
  EXPECT_TRUE(has_text(refusal(wrong), "cuDNN, describing a tensor"));
  wrong = residual(LayerProduct::y, LibraryType::f32);
  wrong.groups = 3;
  EXPECT_TRUE(has_text(refusal(wrong), "not for 2 dimensions, 16 channels and 3 groups"));
  wrong.spatial = 1;
  EXPECT_TRUE(has_text(refusal(wrong), "not for 1 dimensions"));
}

}  // namespace
}  // namespace tutti::device
