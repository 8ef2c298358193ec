// Own updates that are limited to a window of the parameters.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/ops/norm_update.h"

namespace tutti::backend {
namespace {

using Floats = std::vector<float>;

/// Two parameters, one behind the other, on an emulated device; the window has the end of the first
/// and the beginning of the second.
class Updates : public testing::Test {
 protected:
  static constexpr int64_t kSizes[] = {3000, 2500}, kAll = 5500;
  static constexpr int64_t kBegin = 2 * kSumBlock, kEnd = kSizes[0] + kSumBlock;
  static bool inside(int64_t i) { return kBegin <= i && i < kEnd; }

  /// Runs an update with one state and returns what it leaves in its arrays: those of the weights,
  /// the gradients and the states, then its outputs.
  std::vector<Floats> run(const ops::Update& op, bool window) {
    const Floats scalars{0.1f, 0.5f};
    device::Memory given(*device_, scalars.size() * sizeof(float));
    put(given, scalars);
    std::vector<device::Memory> arrays;
    for (int i = 0; i < op.arity(); ++i) {
      arrays.emplace_back(*device_, kAll * sizeof(float));
      Floats values(kAll);
      Rng rng(1, Purpose::test, static_cast<uint64_t>(i));
      for (float& v : values) v = rng.normal();
      put(arrays.back(), values);
    }
    KernelRequest request{.op = &op, .in = {{}, {}}, .out = {}, .in_free = {}, .out_free = {}};
    std::vector<void*> in{given.data(), given.data() + sizeof(float)}, out;
    for (size_t p = 0; p < 2; ++p)
      for (device::Memory& array : arrays) {
        request.in.push_back({DType::f32, Shape{kSizes[p]}, {}});
        in.push_back(array.data() + (p == 0 ? 0 : kSizes[0] * sizeof(float)));
      }
    std::vector<graph::ValueType> types;
    for (const TensorDesc& desc : request.in) types.push_back({desc, false});
    for (const graph::ValueType& type : op.infer(types)) {
      request.out.push_back(type.desc);
      out.push_back(arrays.emplace_back(*device_, type.desc.bytes()).data());
    }
    const std::vector<KernelCandidate> candidates = backend_.candidates(request);
    EXPECT_EQ(candidates.front().name, "gpu:update");
    const std::byte* const w = arrays.front().data();
    KernelArgs args{.in = in.data(), .out = out.data(), .stream = stream_.get()};
    if (window) args.window = {w + kBegin * sizeof(float), w + kEnd * sizeof(float)};
    candidates.front().make()->run(args);
    std::vector<Floats> left;
    for (const device::Memory& array : arrays) {
      Floats& values = left.emplace_back(array.bytes() / sizeof(float));
      backend_.mirrors()->to_host(reinterpret_cast<std::byte*>(values.data()), array.data(),
                                  array.bytes(), *stream_);
    }
    return left;
  }

 private:
  void put(const device::Memory& memory, const Floats& values) {
    backend_.mirrors()->to_device(memory.data(), reinterpret_cast<const std::byte*>(values.data()),
                                  values.size() * sizeof(float), *stream_);
  }

  CpuBackend host_;
  std::unique_ptr<device::Device> device_ =
      device::make_emulated_device({.seed = 1, .functions = own_functions()});
  GpuBackend backend_{*device_, host_, GpuKernels::own_only};
  std::unique_ptr<device::Stream> stream_ = device_->make_stream("test");
};

TEST_F(Updates, ElementsOutsideTheWindowStayAndThoseInsideGetTheSameBits) {
  const ops::SgdUpdate op({.momentum = 0.9, .weight_decay = 0.1});
  const std::vector<Floats> all = run(op, false), some = run(op, true);
  const ops::SgdUpdate none({.momentum = 0.9, .rate = 0});
  const Floats before = run(none, false)[0];
  for (int64_t i = 0; i < kAll; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(some[0][at], inside(i) ? all[0][at] : before[at]) << i;
    if (inside(i)) {
      EXPECT_EQ(some[2][at], all[2][at]) << i;
    }
  }
}

TEST_F(Updates, SumsOfBlocksOutsideTheWindowAreZero) {
  const std::vector<Floats> all = run(ops::ParameterNorms(), false),
                            some = run(ops::ParameterNorms(), true);
  const Floats &want = all.back(), &got = some.back();
  ASSERT_EQ(got.size(), 2 * 6u);
  for (size_t i = 0; i < got.size(); ++i)  // block 2 ends the first parameter, 3 begins the second
    EXPECT_EQ(got[i], i / 2 == 2 || i / 2 == 3 ? want[i] : 0) << i;
}

}  // namespace
}  // namespace tutti::backend
