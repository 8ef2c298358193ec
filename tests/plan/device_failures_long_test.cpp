// Each call of two steps of LeNet on an emulated device fails once.

#include "tests/plan/device_step.h"

namespace tutti::test {
namespace {

TEST(DeviceFailures, AnyCallMayFail) {
  EXPECT_GT(failing_calls({lenet(DType::f32, kMomentum)}, 2, 1, 1), 150);
}

}  // namespace
}  // namespace tutti::test
