// Tests the batch of networks for which no flag gives one.

#include "tutti/cli/verbs/network_flags.h"

#include <gtest/gtest.h>

namespace tutti::cli {
namespace {

int64_t batch_of(const std::string& model, const std::string& precision = "fp32") {
  NetworkChoice choice;
  choice.model = model;
  choice.precision = precision;
  return usual_batch(model_spec(choice));
}

TEST(NetworkFlags, TheUsualBatchOfLargeSamplesIsSmall) {
  for (const char* small : {"mlp", "lenet", "resnet8", "resnet20", "resnet44"})
    EXPECT_EQ(batch_of(small), 128) << small;
  EXPECT_LT(batch_of("resnet50"), 128);
  EXPECT_GE(batch_of("resnet50"), 8);
  EXPECT_LE(batch_of("cosmoflow"), 8);
  EXPECT_LE(batch_of("deepcam-small"), 8);
  EXPECT_LE(batch_of("deepcam"), 2);
  EXPECT_EQ(batch_of("deepcam-small", "bf16"), 2 * batch_of("deepcam-small"));
}

}  // namespace
}  // namespace tutti::cli
