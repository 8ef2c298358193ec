// Ranks that share samples, at sizes where four parts are multiples of all strides. Minutes.

#include <gtest/gtest.h>

#include "tests/plan/parts_check.h"

namespace tutti::test {
namespace {

class Wide : public testing::TestWithParam<const char*> {};

TEST_P(Wide, EqualsTheSerialStepEachTime) {
  for (const std::vector<int64_t>& spatial :
       {std::vector<int64_t>{2}, std::vector<int64_t>{4}, std::vector<int64_t>{2, 2}})
    for (const int replicas : {1, 2}) {
      const Parts parts{
          .network = GetParam(), .spatial = spatial, .replicas = replicas, .slabs = 0, .batch = 1};
      expect_serial(parts, 1e-4);
      expect_same_bits(parts);
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, Wide,
                         testing::Values("cosmoflow2-wide", "cosmoflow3-wide", "deepcam-wide"),
                         [](const auto& info) {
                           std::string name(info.param);
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace tutti::test
