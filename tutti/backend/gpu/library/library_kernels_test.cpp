#include "tutti/backend/gpu/library/library_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/backend/gpu/library/library_trial.h"
#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/device/emulated/stand_in_libraries.h"

namespace tutti::backend {
namespace {

using device::LibraryWay, device::StandInLibraries;

/// An emulated device whose libraries offer these ways.
struct WithLibraries {
  CpuBackend host;
  std::unique_ptr<device::EmulatedDevice> device;
  StandInLibraries* libraries;
  std::unique_ptr<GpuBackend> backend;

  explicit WithLibraries(std::vector<LibraryWay> ways, bool tf32 = false, int64_t failing_call = 0)
      : device(device::make_emulated_device(
            {.seed = 1, .failing_call = failing_call, .functions = own_functions()})) {
    auto made = std::make_unique<StandInLibraries>(std::move(ways));
    libraries = made.get();
    device->set_libraries(std::move(made));
    backend = std::make_unique<GpuBackend>(*device, host, GpuKernels::own_only, tf32);
  }
  explicit WithLibraries(const std::string& way, bool tf32 = false, int64_t failing_call = 0)
      : WithLibraries(std::vector<LibraryWay>{{.name = way, .refusal = {}}}, tf32, failing_call) {}

  std::vector<KernelCandidate> candidates(const std::string& line) const {
    const OpCase c = parse_op_case(line);
    held.push_back(c.problem.op);
    KernelRequest request{.op = c.problem.op.get(),
                          .in = {},
                          .out = {},
                          .in_free = c.problem.in_free,
                          .out_free = c.problem.out_free};
    const auto last = [](TensorDesc desc, bool batched) {
      if (batched) desc.layout = Layout::channels_last(desc.shape.rank());
      return desc;
    };
    for (const graph::ValueType& type : c.problem.in)
      request.in.push_back(last(type.desc, type.batched));
    for (const graph::ValueType& type : c.problem.out())
      request.out.push_back(last(type.desc, type.batched));
    request.in_free.resize(request.in.size());
    request.out_free.resize(request.out.size());
    return backend->candidates(request);
  }
  KernelTrial trial(const std::string& line) const { return candidates(line).front().trial(); }

  mutable std::vector<graph::OpPtr> held;
};

bool is_product(const std::string& line) {
  static const std::set<std::string> products{
      "conv",  "conv_backward_data",  "conv_backward_weights", "conv_transpose",
      "dense", "dense_backward_data", "dense_backward_weights"};
  return products.contains(line.substr(0, line.find(' ')));
}

constexpr const char* kConv = "conv f32 n2c4h6w6 k8r3s3 pad1 bias relu";

/// Layouts, copies, types, bias and activation around the library's product.
TEST(LibraryKernels, AgreeWithTheReferenceInAllShortCases) {
  constexpr double kMostFlop = 5e5;
  const WithLibraries with("stand_in:1");
  int runs = 0;
  for (const std::string& line : conformance_lines()) {
    if (!is_product(line)) continue;
    const OpCase c = parse_op_case(line);
    if (c.problem.op->flop(c.problem.in, c.problem.out()) > kMostFlop) continue;
    const Backend* const one[] = {with.backend.get()};
    const ConformanceReport report = check_on_devices(c, one);
    runs += report.runs;
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  }
  EXPECT_GT(runs, 100);
  EXPECT_GT(with.libraries->puts().at("stand_in:1"), 50);
  EXPECT_GT(with.libraries->puts().at("stand_in:1 dense"), 20);
}

TEST(LibraryKernels, EachProductPassesItsTrial) {
  const WithLibraries with("stand_in:1");
  for (const std::string type : {"f32", "bf16"})
    for (const std::string rest :
         {"n2c4h6w6 k8r3s3 pad1", "n2c8d5h6w5 k4t3r3s3 stride2 pad1", "n2c8h6w6 k4r1s1"})
      for (const std::string op :
           {"conv", "conv_backward_data", "conv_backward_weights", "conv_transpose"}) {
        const std::string line = op + " " + type + " " + rest;
        const KernelTrial trial = with.trial(line);
        EXPECT_EQ(trial.refusal, "") << line;
        EXPECT_TRUE(has_text(trial.result, "differs from gpu:products by ")) << trial.result;
      }
  for (const std::string type : {"f32", "bf16"})
    for (const std::string op : {"dense", "dense_backward_data", "dense_backward_weights"})
      for (const std::string end : {"", " narrow", " bias narrow"}) {
        if (end == " bias narrow" && op != "dense") continue;
        const std::string line = op + " " + type + " n6c16h2w2 k10" + end;
        EXPECT_EQ(with.trial(line).refusal, "") << line;
      }
}

TEST(LibraryKernels, WhatIsWrongIsRefusedAtItsTrial) {
  for (const std::string type : {"f32", "bf16"})
    for (const std::string op : {"conv", "conv_backward_data", "conv_backward_weights"}) {
      const std::string line = op + " " + type + " n2c4h6w6 k8r3s3 pad1";
      EXPECT_TRUE(has_text(WithLibraries("wrong").trial(line).refusal, " is allowed")) << line;
      EXPECT_EQ(WithLibraries("restless").trial(line).refusal,
                "its results are not the same bits when it runs again")
          << line;
      EXPECT_EQ(WithLibraries("failing").trial(line).refusal, "stand-in: it cannot be put");
    }
}

TEST(LibraryKernels, FactorsAreRoundedOnlyWhereTf32IsAskedFor) {
  EXPECT_TRUE(has_text(WithLibraries("coarse").trial(kConv).refusal, "differs from gpu:products"));
  const WithLibraries tf32("stand_in:1", true);
  const KernelCandidate c = tf32.candidates(kConv).front();
  EXPECT_EQ(c.trial().refusal, "");
  EXPECT_EQ(c.versions, "emulated GPU, stand-in 1.0, tf32");
  EXPECT_EQ(WithLibraries("stand_in:1").candidates(kConv).front().versions,
            "emulated GPU, stand-in 1.0");
}

TEST(LibraryKernels, ATrialIsMadeOnceForAProblemAndLeavesNoMemory) {
  const WithLibraries with("stand_in:1");
  const size_t before = with.device->counts().bytes;
  const KernelTrial first = with.trial(kConv);
  const size_t staging = with.device->counts().bytes - before;
  EXPECT_EQ(with.libraries->puts().at("stand_in:1"), 2);
  EXPECT_EQ(with.trial(kConv).result, first.result);
  EXPECT_EQ(with.libraries->puts().at("stand_in:1"), 2);
  (void)with.trial("conv f32 n2c4h8w8 k8r3s3 pad1");
  EXPECT_EQ(with.libraries->puts().at("stand_in:1"), 4);
  EXPECT_EQ(with.device->counts().bytes - before, staging);
}

TEST(LibraryKernels, ATrialThatFailsAtAnyCallLeavesNoMemory) {
  int64_t first = 0, last = 0;
  size_t bytes = 0;
  {
    const WithLibraries with("stand_in:1");
    first = with.device->calls();
    EXPECT_EQ(with.trial(kConv).refusal, "");
    last = with.device->calls();
    bytes = with.device->counts().bytes;
  }
  ASSERT_GT(last, first + 20);
  for (int64_t call = first + 1; call <= last; ++call) {
    const WithLibraries with("stand_in:1", false, call);
    try {
      const std::string refusal = with.trial(kConv).refusal;
      EXPECT_TRUE(refusal.empty() || has_text(refusal, "because it was asked to")) << refusal;
    } catch (const DeviceError& error) {
      EXPECT_TRUE(has_text(error.what(), "fails because it was asked to")) << call;
    }
    EXPECT_LE(with.device->counts().bytes, bytes) << call;
  }
}

TEST(LibraryKernels, WaysThatAreNotTakenSayWhy) {
  std::vector<LibraryWay> ways{{.name = "a", .refusal = "not deterministic"},
                               {.name = "b", .refusal = {}, .workspace_bytes = size_t{300} << 20},
                               {.name = {}, .refusal = {}},
                               {.name = {}, .refusal = "no library"}};
  for (int i = 0; i < 10; ++i) ways.push_back({.name = std::to_string(i), .refusal = {}});
  const WithLibraries with(ways);
  const std::vector<KernelCandidate> found = with.candidates(kConv);
  ASSERT_EQ(found.size(), 14u);  // four refusals, eight ways, gpu:products and the host's refusal
  EXPECT_EQ(found[0].refusal, "not deterministic");
  EXPECT_EQ(found[1].refusal, "it needs 300.0 MiB of workspace, 256.0 MiB are allowed");
  EXPECT_TRUE(has_text(found[2].refusal, "no name"));
  EXPECT_EQ(found[3].name + ": " + found[3].refusal, "library: no library");
  for (size_t i = 4; i < 12; ++i) {
    EXPECT_EQ(found[i].name, std::to_string(i - 4));
    EXPECT_EQ(found[i].refusal, "");
    EXPECT_EQ(found[i].speed, KernelSpeed::fast);
  }
  EXPECT_EQ(found[12].name, "gpu:products");
}

TEST(LibraryKernels, ALibraryThatCannotBeAskedLeavesOurKernels) {
  const std::vector<KernelCandidate> found =
      WithLibraries(std::vector<LibraryWay>{}).candidates(kConv);
  EXPECT_EQ(found[0].name + ": " + found[0].refusal, "library: stand-in: it cannot be asked");
  EXPECT_EQ(found[1].name, "gpu:products");
  EXPECT_EQ(found[1].refusal, "");
}

/// The gradient of its weights comes as f32 from there, and with 16 bits from a convolution.
TEST(LibraryKernels, APointwiseConvolutionMayBeADenseLayer) {
  const WithLibraries with("1");
  const auto first_two = [&](const std::string& line) {
    const std::vector<KernelCandidate> found = with.candidates(line);
    return found[0].name + ", " + found[1].name;
  };
  EXPECT_EQ(first_two("conv bf16 n2c4h6w6 k8r1s1"), "1, 1 dense");
  EXPECT_EQ(first_two("conv_backward_weights bf16 n2c4h6w6 k8r1s1"), "1 dense, 1");
  EXPECT_EQ(first_two("conv bf16 n2c4h6w6 k8r1s1 stride2"), "1, gpu:products");
}

TEST(LibraryKernels, TheBoundFollowsFromTermsAndTypes) {
  const auto bound = [](int64_t terms, device::LibraryType type, DType result) {
    LibraryProduct product;
    product.asked = device::LibraryDense{.type = type};
    product.terms = terms;
    product.result.dtype = result;
    product.out = {product.result};
    return allowed_distance(product);
  };
  using enum device::LibraryType;
  EXPECT_NEAR(bound(576, f32, DType::f32), 6.2e-6, 1e-7);
  EXPECT_NEAR(bound(576, tf32, DType::f32), 2.3e-5, 1e-6);
  EXPECT_NEAR(bound(576, bf16, DType::bf16), 7.8e-3, 1e-4);
}

}  // namespace
}  // namespace tutti::backend
