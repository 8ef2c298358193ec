// Tests that nothing is allocated after compilation. This program replaces the C library's
// allocator entry points; sanitizer builds, which replace them themselves, leave it out.
// Allocations of oneDNN inside dnnl_primitive_execute are not counted: up to version 3 it builds a
// small map of its arguments at every call (about 0.3 us), which no caller can prevent.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "tests/plan/plan_run.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/train/network/weights.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
thread_local bool inside_library = false;
void count() {
  if (counting.load(std::memory_order_relaxed) && !inside_library) ++allocations;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void* calloc(size_t n, size_t bytes) { return count(), __libc_calloc(n, bytes); }
void* realloc(void* old, size_t bytes) { return count(), __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) {
  return count(), __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return count(), __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  count();
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;  // ENOMEM
}
int dnnl_primitive_execute(const void* primitive, void* stream, int count, const void* arguments) {
  using Execute = int (*)(const void*, void*, int, const void*);
  static const auto execute = reinterpret_cast<Execute>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  inside_library = true;
  const int status = execute(primitive, stream, count, arguments);
  inside_library = false;
  return status;
}
}

namespace tutti::test {
namespace {

class NoAllocation : public testing::TestWithParam<std::tuple<DType, int>> {};

TEST_P(NoAllocation, InAStep) {
  const auto [dtype, threads] = GetParam();
  const train::TrainingGraph training = small_residual_net(dtype, 2);
  const backend::CpuBackend backend;
  const plan::Plan plan = plan::compile(training.graph, backend,
                                        {.threads = threads, .layout = "b16c", .measure = false});
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  train::Weights weights(plan.variables, 1);
  weights.initialise(1);
  device::Buffer gradients(plan.variables.parameter_bytes),
      images(plan.desc(training.inputs[0].value).bytes()), labels(64);
  plan::ReplicaState replica = weights.replica(0);
  replica.gradients = gradients.data();
  executor->bind(replica);
  const auto step = [&] {
    executor->bind_input(training.inputs[0].value, images.data());
    executor->bind_input(training.inputs[1].value, labels.data());
    executor->set_scalar(training.lr, 0.1f);
    executor->pack();
    executor->run({});
    executor->update({});
  };
  step();  // the OpenMP team starts here
  allocations = 0;
  counting = true;
  step();
  step();
  counting = false;
  EXPECT_EQ(allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, NoAllocation,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Values(1, 2)));

TEST(NoAllocation, TheCounterCounts) {
  allocations = 0;
  counting = true;
  std::free(std::malloc(100));
  std::vector<int>* vector = new std::vector<int>(100);
  delete vector;
  counting = false;
  EXPECT_GE(allocations, 2);
}

}  // namespace
}  // namespace tutti::test
