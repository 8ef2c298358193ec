#include "tutti/backend/gpu/gpu_backend.h"

#include <gtest/gtest.h>

#include "tutti/backend/conformance/op_case.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/emulated_device.h"

namespace tutti::backend {
namespace {

class GpuBackendTest : public testing::Test {
 protected:
  CpuBackend host_;
  std::unique_ptr<device::Device> device_ =
      device::make_emulated_device({.seed = 1, .functions = own_functions()});
  GpuBackend own_first_{*device_, host_, GpuKernels::prefer_own},
      own_only_{*device_, host_, GpuKernels::own_only};
  OpProblem add_ = parse_op_case("add f32 n3c5h6w7").problem;
  OpProblem spectrum_ = parse_op_case("power_spectrum f32 n2c1h8w8").problem;
};

TEST_F(GpuBackendTest, OwnKernelsStandBeforeThoseOfTheHost) {
  const OpRun run(add_, own_first_, {});
  EXPECT_EQ(run.kernel(), "gpu:pointwise");
  EXPECT_FALSE(run.is_slow("gpu:pointwise"));
  ASSERT_GE(run.accepted().size(), 2u);
  EXPECT_EQ(run.accepted()[1], "host:cpu:pointwise");
  EXPECT_TRUE(run.is_slow("host:cpu:pointwise"));
}

TEST_F(GpuBackendTest, AnOpWithoutAnOwnKernelTakesOneOfTheHost) {
  EXPECT_TRUE(OpRun(spectrum_, own_first_, {}).kernel().starts_with("host:"));
}

TEST_F(GpuBackendTest, AnOpWithoutAnOwnKernelIsRefusedWhereOnlyOwnOnesCount) {
  EXPECT_EQ(OpRun(add_, own_only_, {}).accepted(), std::vector<std::string>{"gpu:pointwise"});
  EXPECT_TRUE(
      throws<DeviceError>({"plan.host_kernels = true"}, [&] { OpRun(spectrum_, own_only_, {}); }));
}

}  // namespace
}  // namespace tutti::backend
