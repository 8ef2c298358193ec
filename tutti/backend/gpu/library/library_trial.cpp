#include "tutti/backend/gpu/library/library_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tutti/backend/gpu/own/box_move.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::backend {
namespace {

constexpr std::string_view kOwnName = "gpu:products";
/// The length of a pattern that fills an operand: a prime, so that equal numbers do not stand at
/// any stride of a shape.
constexpr int64_t kPattern = 1000003;

/// Returns our kernel for the request, where weights are plain and f32.
KernelCandidate own_of(device::Device& device, KernelRequest request,
                       const LibraryProduct& product) {
  request.in = product.in;
  request.out = product.out;
  request.in_free.assign(request.in.size(), false);
  request.out_free.assign(1, false);
  if (std::visit([](const auto& a) { return a.makes; }, product.asked) == device::LayerProduct::w)
    request.out_free[0] = true;
  else
    request.in_free[1] = true;
  for (KernelCandidate& own : own_kernels().candidates(request, device))
    if (own.name == kOwnName) return std::move(own);
  return {.name = std::string(kOwnName),
          .refusal = "it has no such op",
          .in = {},
          .out = {},
          .make = {}};
}

/// Numbers of mean 0 in (-scale, scale); `short_ones` are such that bf16 holds them.
template <class T>
std::vector<T> random_numbers(int64_t count, uint64_t operand, float scale, bool short_ones) {
  Rng rng(operand, Purpose::test, 0);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) {
    const float x = (2 * rng.uniform() - 1) * scale;
    number = T(short_ones ? static_cast<float>(bf16(x)) : x);
  }
  return numbers;
}

/// Waits, when it ends, for work that uses memory which ends after it.
class EndOfWork {
 public:
  EndOfWork(device::Device& device, device::Stream& stream) : device_(device), stream_(stream) {}
  EndOfWork(const EndOfWork&) = delete;
  EndOfWork& operator=(const EndOfWork&) = delete;
  ~EndOfWork() {
    try {
      settle(device_, stream_, "the work of a trial");
    } catch (const std::exception&) {
      // The call that met the failure has reported it.
    }
  }

 private:
  device::Device& device_;
  device::Stream& stream_;
};

class Trial {
 public:
  Trial(device::Device& device, device::Mirrors& mirrors, const LibraryProduct& product,
        const KernelCandidate& library, const KernelCandidate& own)
      : device_(device), mirrors_(mirrors), product_(product), library_(library), own_(own),
        stream_(device.make_stream("trial")), end_(device, *stream_) {}

  KernelTrial run() {
    for (size_t i = 0; i < own_.in.size(); ++i) make_input(i);
    std::string failure;
    const std::vector<std::byte> want = results_of(own_, *own_.make(), own_in_, failure);
    if (!failure.empty()) throw DeviceError(failure);
    std::unique_ptr<Kernel> kernel;
    failure = failure_of([&] { kernel = library_.make(); });
    std::vector<std::byte> got, again;
    if (failure.empty()) got = results_of(library_, *kernel, library_in_, failure);
    if (failure.empty()) again = results_of(library_, *kernel, library_in_, failure);
    if (!failure.empty()) return {.refusal = failure, .result = {}};
    const double distance = own_.out[0].dtype == DType::f32 ? distance_of<float>(got, want)
                                                            : distance_of<bf16>(got, want),
                 allowed = allowed_distance(product_);
    const std::string text =
        fmt::format("differs from {} by {:.1e}, {:.1e} is allowed", kOwnName, distance, allowed);
    if (!(distance <= allowed)) return {.refusal = text, .result = {}};
    if (got != again)
      return {.refusal = "its results are not the same bits when it runs again", .result = {}};
    return {.refusal = {}, .result = text};
  }

 private:
  /// Fills an operand of ours, and the library's, which may be the same.
  void make_input(size_t i) {
    const TensorDesc &own = own_.in[i], &library = library_.in[i];
    device::Memory& memory = own_memory_.emplace_back(device_, own.bytes());
    fill(memory, own, i);
    own_in_.push_back(memory.data());
    library_in_.push_back(memory.data());
    if (same_memory(own, library)) return;
    library_in_.back() = library_memory_.emplace_back(device_, library.bytes()).data();
    move_all(device_, own, library).run(*stream_, memory.data(), library_in_.back());
  }
  void fill(const device::Memory& memory, const TensorDesc& desc, size_t i) {
    const bool short_ones = type_of(product_.asked) != device::LibraryType::f32 && i < 2;
    // Sums are about 1, where no activation is flat. A power of two changes no rounding.
    const double terms = std::log2(static_cast<double>(product_.terms));
    const float scale = i == 1 ? std::ldexp(1.0f, -static_cast<int>(terms / 2)) : 1.0f;
    const int64_t count = std::min(desc.elements(), kPattern);
    if (desc.dtype == DType::f32)
      send(memory, random_numbers<float>(count, i, scale, short_ones));
    else
      send(memory, random_numbers<bf16>(count, i, scale, true));
  }
  /// Repeats the numbers over the memory.
  template <class T>
  void send(const device::Memory& memory, const std::vector<T>& numbers) {
    size_t filled = numbers.size() * sizeof(T);
    mirrors_.to_device(memory.data(), reinterpret_cast<const std::byte*>(numbers.data()), filled,
                       *stream_);
    while (filled < memory.bytes()) {
      const size_t bytes = std::min(filled, memory.bytes() - filled);
      stream_->copy(memory.data() + filled, memory.data(), bytes);
      filled += bytes;
    }
  }

  /// Returns why a call fails; empty: it does not. Throws DeviceError for a device that is lost.
  template <class Fn>
  std::string failure_of(Fn call) {
    try {
      call();
      return {};
    } catch (const DeviceError& error) {
      settle(device_, *stream_, "the work before a failure");
      return error.what();
    }
  }

  /// Runs a kernel, whose result and workspace begin as NaN. Returns the result as gpu:products
  /// lays it out, or the reason for having none.
  std::vector<std::byte> results_of(const KernelCandidate& candidate, Kernel& kernel,
                                    const std::vector<void*>& in, std::string& failure) {
    const TensorDesc &made = candidate.out[0], &wanted = own_.out[0];
    const bool moves = !same_memory(made, wanted);
    const device::Memory out(device_, made.bytes()), moved(device_, moves ? wanted.bytes() : 0),
        workspace(device_, kernel.workspace_bytes()), numbers(device_, kernel.number_bytes());
    const EndOfWork end(device_, *stream_);
    for (const device::Memory* const memory : {&out, &workspace})
      if (memory->bytes() > 0) stream_->fill(memory->data(), std::byte{0xFF}, memory->bytes());
    std::vector<std::byte> written(numbers.bytes());
    kernel.write_numbers({}, written.data());
    if (!written.empty())
      mirrors_.to_device(numbers.data(), written.data(), written.size(), *stream_);
    void* const outputs[] = {out.data()};
    failure = failure_of([&] {
      kernel.run({.in = in.data(),
                  .out = outputs,
                  .workspace = workspace.data(),
                  .stream = stream_.get(),
                  .numbers = numbers.data()});
    });
    if (!failure.empty()) return {};
    if (moves) move_all(device_, made, wanted).run(*stream_, out.data(), moved.data());
    std::vector<std::byte> values(wanted.bytes());
    mirrors_.to_host(values.data(), moves ? moved.data() : out.data(), values.size(), *stream_);
    return values;
  }

  /// Returns the largest distance, relative to the largest number that we want; NaN if there is
  /// one.
  template <class T>
  static double distance_of(const std::vector<std::byte>& got, const std::vector<std::byte>& want) {
    const size_t count = want.size() / sizeof(T);
    const auto* const a = reinterpret_cast<const T*>(got.data());
    const auto* const b = reinterpret_cast<const T*>(want.data());
    float most = 0, farthest = 0;
    bool is_nan = false;
    for (size_t i = 0; i < count; ++i) {
      const float x = static_cast<float>(a[i]), y = static_cast<float>(b[i]);
      is_nan |= x != x;
      most = std::max(most, std::abs(y));
      farthest = std::max(farthest, std::abs(x - y));
    }
    return is_nan ? std::nan("") : double{farthest} / double{most};
  }

  device::Device& device_;
  device::Mirrors& mirrors_;
  const LibraryProduct& product_;
  const KernelCandidate &library_, &own_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<device::Memory> own_memory_, library_memory_;
  std::vector<void*> own_in_, library_in_;  // the library's may be ours
  EndOfWork end_;
};

}  // namespace

double allowed_distance(const LibraryProduct& product) {
  constexpr double kUnit = 0x1p-24, kSpacing16 = 0x1p-7;
  const auto n = static_cast<double>(product.terms);
  double allowed = kUnit * 4 * (std::sqrt(n) + 2);
  if (type_of(product.asked) != device::LibraryType::f32) allowed += kUnit * n / 2;
  if (product.result.dtype == DType::bf16 || product.out[0].dtype == DType::bf16)
    allowed += kSpacing16;
  return allowed;
}

KernelTrial try_beside_own(device::Device& device, device::Mirrors& mirrors,
                           const KernelRequest& request, const LibraryProduct& product,
                           const KernelCandidate& candidate) {
  const KernelCandidate own = own_of(device, request, product);
  if (!own.refusal.empty())
    return {.refusal = fmt::format("it cannot be compared: {}: {}", own.name, own.refusal),
            .result = {}};
  return Trial(device, mirrors, product, candidate, own).run();
}

}  // namespace tutti::backend
