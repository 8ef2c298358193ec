// Tests every op on every kernel of the CPU backend against the reference.

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

std::string op_of(const std::string& line) { return line.substr(0, line.find(' ')); }

/// Returns the ops of the case list, each once.
std::vector<std::string> ops() {
  std::vector<std::string> names;
  for (const std::string& line : backend::conformance_lines())
    if (std::find(names.begin(), names.end(), op_of(line)) == names.end())
      names.push_back(op_of(line));
  return names;
}

void expect_conformance(const std::string& op, const backend::Backend& backend) {
  int runs = 0;
  for (const std::string& line : backend::conformance_lines()) {
    if (op_of(line) != op) continue;
    const backend::ConformanceReport report =
        backend::check_conformance(backend::parse_op_case(line), backend);
    runs += report.runs;
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  }
  EXPECT_GT(runs, 0);
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, CpuKernelsAgreeWithTheReference) {
  expect_conformance(GetParam(), backend::CpuBackend());
}

/// The reference agrees with itself for every tile, thread count and layout: its accumulators and
/// offsets are right.
TEST_P(Conformance, ReferenceDoesNotDependOnTiles) {
  expect_conformance(GetParam(), backend::ReferenceBackend());
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(ops()),
                         [](const auto& info) { return info.param; });

TEST(OpCase, RefusesWordsWithoutMeaning) {
  EXPECT_THROW(backend::parse_op_case("conv f32 n8c16h32w32 k16r3s3 stirde2"), ConfigError);
  EXPECT_THROW(backend::parse_op_case("convolution f32 n8c16h32w32"), ConfigError);
  EXPECT_THROW(backend::parse_op_case("conv f33 n8c16h32w32 k16r3s3"), ConfigError);
  EXPECT_THROW(backend::parse_op_case("conv f32 n8c16h2w2 k16r5s5"), ConfigError);
}

/// A diverging network must show it: oneDNN's maximum of NaN, for one, is the lowest number.
TEST(Conformance, AMaximumOfNaNIsNaNOnEveryKernel) {
  const backend::OpCase c = backend::parse_op_case("pool f32 n1c16h4w4 max r2s2 stride2");
  std::vector<backend::Values> inputs = backend::random_inputs(c, 1);
  inputs[0][5] = NAN;  // in the first window
  const backend::CpuBackend backend;
  for (const char* layout : {"plain", "last", "b16c"}) {
    backend::OpRunOptions options;
    options.layout = layout;
    options.kernel.clear();
    const std::vector<std::string> accepted =
        backend::OpRun(c.problem, backend, options).accepted();
    for (const std::string& kernel : accepted) {
      options.kernel = kernel;
      backend::OpRun run(c.problem, backend, options);
      run.set_in(0, inputs[0]);
      run.run();
      EXPECT_TRUE(std::isnan(run.out(0)[0])) << kernel << " " << layout;
      EXPECT_FALSE(std::isnan(run.out(0)[1])) << kernel << " " << layout;
    }
  }
}

/// The test finds a kernel that is wrong in one element.
TEST(Conformance, FindsAWrongElement) {
  class Wrong final : public backend::Backend {
   public:
    std::string_view name() const override { return "wrong"; }
    std::vector<backend::KernelCandidate> candidates(
        const backend::KernelRequest& request) const override {
      struct WrongKernel final : backend::Kernel {
        explicit WrongKernel(std::unique_ptr<backend::Kernel> k) : right(std::move(k)) {}
        void run(const backend::KernelArgs& args) override {
          right->run(args);
          static_cast<float*>(args.out[0])[3] += 0.01f;
        }
        std::unique_ptr<backend::Kernel> right;
      };
      std::vector<backend::KernelCandidate> found = backend::ReferenceBackend().candidates(request);
      found[0].make = [make = found[0].make] { return std::make_unique<WrongKernel>(make()); };
      return found;
    }
    std::vector<Layout> activation_layouts(const Shape&, DType) const override {
      return {Layout::plain()};
    }
  };
  EXPECT_FALSE(backend::check_conformance(backend::parse_op_case("add f32 n4c8h2w2"), Wrong())
                   .failures.empty());
}

}  // namespace
}  // namespace tutti
