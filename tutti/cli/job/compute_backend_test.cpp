#include "tutti/cli/job/compute_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/cli/config/config.h"
#include "tutti/ops/elementwise.h"

namespace tutti::cli {
namespace {

config::RunConfig on(config::DeviceKind device) {
  config::RunConfig config;
  config.run.device = device;
  return config;
}

/// Sets a variable of this process while it lives.
class SeedVariable {
 public:
  SeedVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~SeedVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(ComputeBackend, TheCpuNeedsNoDevice) {
  const ComputeBackend compute = compute_backend(on(config::DeviceKind::cpu));
  EXPECT_EQ(compute.device, nullptr);
  EXPECT_EQ(compute.backend().device(), nullptr);
}

TEST(ComputeBackend, AnEmulatedDeviceIsAlwaysThere) {
  const ComputeBackend compute = compute_backend(on(config::DeviceKind::emulated));
  ASSERT_NE(compute.device, nullptr);
  EXPECT_EQ(compute.backend().device(), compute.device.get());
  EXPECT_EQ(compute.backend().name(), "emulated");
  EXPECT_FALSE(compute.device->functions().empty()) << "own kernels";
  EXPECT_TRUE(std::isinf(compute.device->time_limit)) << "slowness is no hang";
  EXPECT_TRUE(has_text(device_line(compute.device->facts()), "(emulated 0"));
  EXPECT_EQ(device_json(compute.device->facts())["kind"], "emulated");
}

/// Returns the names of the kernels that are offered for a sum.
std::vector<std::string> kernels_for_sum(const config::RunConfig& config) {
  const ComputeBackend compute = compute_backend(config);
  const ops::Add sum;
  const TensorDesc desc{DType::f32, {2, 8}, {}};
  std::vector<std::string> names;
  for (const backend::KernelCandidate& candidate : compute.backend().candidates({.op = &sum,
                                                   .in = {desc, desc},
                                                   .out = {desc},
                                                   .in_free = {false, false},
                                                   .out_free = {false}}))
    names.push_back(candidate.name);
  return names;
}

TEST(ComputeBackend, HostKernelsComputeAllOfTheEmulatedDeviceWhereThatIsAskedFor) {
  config::RunConfig config = on(config::DeviceKind::emulated);
  const std::vector<std::string> both = kernels_for_sum(config);
  EXPECT_TRUE(both.front().starts_with("gpu:")) << both.front();
  EXPECT_TRUE(both.back().starts_with("host:")) << both.back();
  config.plan.host_kernels = true;
  for (const std::string& name : kernels_for_sum(config))
    EXPECT_TRUE(name.starts_with("host:")) << name;
}

TEST(ComputeBackend, Tf32IsRefusedWhereNothingComputesInIt) {
  for (const auto& [device, why] : {std::pair{config::DeviceKind::cpu, "run.device is \"cpu\""},
                                    {config::DeviceKind::emulated, "emulated GPU has none"}}) {
    config::RunConfig config = on(device);
    EXPECT_NO_THROW(compute_backend(config));
    config.run.precision = config::Precision::tf32;
    EXPECT_TRUE(throws<ConfigError>(
        {"run.precision = \"tf32\"", why, "(--precision fp32), or run.device = \"cuda\" (--gpu)"},
        [&] { compute_backend(config); }))
        << why;
  }
}

TEST(ComputeBackend, ASeedOfTheEmulatedDeviceIsANumber) {
  for (const char* wrong : {"-1", "1.5", "two", "1 2"}) {
    const SeedVariable seed(kEmulatedSeedVariable, wrong);
    EXPECT_TRUE(throws<ConfigError>({"TUTTI_EMULATED_SEED must be a whole number"}, [] {
      compute_backend(on(config::DeviceKind::emulated));
    })) << wrong;
    EXPECT_NO_THROW(compute_backend(on(config::DeviceKind::cpu)));
  }
  const SeedVariable seed(kEmulatedSeedVariable, "7");
  EXPECT_NO_THROW(compute_backend(on(config::DeviceKind::emulated)));
  EXPECT_TRUE(read_config({.environment = {{kEmulatedSeedVariable, "7"}}}).warnings.empty());
}

TEST(ComputeBackend, ALineOfADeviceLeavesOutWhatIsNotKnown) {
  device::DeviceFacts facts;
  facts.kind = "emulated";
  facts.name = "a device";
  facts.memory_bytes = size_t{1} << 30;
  EXPECT_EQ(device_line(facts), "a device (emulated 0), 1.0 GiB");
  facts.driver = "580.159";
  facts.runtime = "13.0";
  EXPECT_EQ(device_line(facts), "a device (emulated 0, driver 580.159, runtime 13.0), 1.0 GiB");
}

}  // namespace
}  // namespace tutti::cli
