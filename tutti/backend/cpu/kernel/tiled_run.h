#pragma once
// For tests: runs a kernel the way the plan does, over tiles and several threads' states, on values
// given in plain order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/reference/plain_tensor.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::backend::testing {

/// A tensor's values in plain order, as floats.
using Values = std::vector<float>;

/// Returns the same numbers for the same `n` and `stream`, drawn once.
inline Values random_values(int64_t n, uint64_t stream, float mean = 0) {
  static std::map<std::pair<int64_t, uint64_t>, Values> drawn;
  Values& normal = drawn[{n, stream}];
  Rng rng(1, Purpose::test, stream);
  while (std::ssize(normal) < n) normal.push_back(rng.normal());
  Values v = normal;
  for (float& x : v) x += mean;
  return v;
}

/// Rounds to the type's precision.
inline Values rounded(Values v, DType type) {
  if (type == DType::bf16)
    for (float& x : v) x = static_cast<float>(bf16(x));
  return v;
}

/// Calls visit(plain position, offset in the layout) for all elements.
template <class Visit>
void for_each_element(const TensorDesc& d, Visit visit) {
  const PlainTensor plain(d);
  for (int64_t i = 0; i < plain.size(); ++i)
    visit(static_cast<size_t>(i), static_cast<size_t>(plain.place(i)));
}

inline device::Buffer pack(const TensorDesc& d, const Values& v) {
  device::Buffer b(d.bytes());
  for_each_element(d, [&](size_t i, size_t at) {
    switch (d.dtype) {
      case DType::f32: b.as<float>()[at] = v[i]; break;
      case DType::bf16: b.as<bf16>()[at] = bf16(v[i]); break;
      case DType::i32: b.as<int32_t>()[at] = static_cast<int32_t>(v[i]); break;
      case DType::u8: b.as<uint8_t>()[at] = static_cast<uint8_t>(v[i]); break;
    }
  });
  return b;
}

inline Values unpack(const TensorDesc& d, const device::Buffer& b) {
  Values v(static_cast<size_t>(d.elements()));
  for_each_element(d, [&](size_t i, size_t at) {
    switch (d.dtype) {
      case DType::f32: v[i] = b.as<float>()[at]; break;
      case DType::bf16: v[i] = static_cast<float>(b.as<bf16>()[at]); break;
      case DType::i32: v[i] = static_cast<float>(b.as<int32_t>()[at]); break;
      case DType::u8: v[i] = static_cast<float>(b.as<uint8_t>()[at]); break;
    }
  });
  return v;
}

/// Memory that starts as NaN, between bytes that must stay as they are.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : memory_(bytes + 2 * kGuard), bytes_(bytes) {
    std::fill_n(memory_.data(), memory_.bytes(), kUntouched);
    std::fill_n(data(), bytes, std::byte{0xFF});
  }
  std::byte* data() const { return memory_.data() + kGuard; }
  void check(const std::string& kernel, const char* what) const {
    const auto untouched = [](const std::byte* from) {
      return std::all_of(from, from + kGuard, [](std::byte b) { return b == kUntouched; });
    };
    CHECK(untouched(memory_.data()) && untouched(data() + bytes_), "{} writes beyond its {}",
          kernel, what);
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr std::byte kUntouched{0xA5};
  device::Buffer memory_;
  size_t bytes_;
};

struct TiledRun {
  std::vector<int> tiles;  ///< number of tiles of each thread: {3} or {2, 1}
  std::vector<bool> batched_in, batched_out;
  bool in_place = false;  ///< out[0] is in[0]'s memory
};

inline TensorDesc whole_batch(TensorDesc d, bool batched, int tiles) {
  if (batched) d.shape[0] *= tiles;
  return d;
}

/// Runs the candidate on `in` (values of the whole batch); afterwards `in` holds the inputs as the
/// kernel left them. Unwritten outputs and states start as NaN, so that missing initialisation is
/// noticed.
inline std::vector<Values> run_tiled(const KernelCandidate& c, std::vector<Values>& in,
                                     const TiledRun& how) {
  int tiles = 0;
  for (const int n : how.tiles) tiles += n;
  const auto poison = [](const device::Buffer& b) {
    std::fill_n(b.as<uint8_t>().data(), b.bytes(), uint8_t{0xFF});
  };
  std::vector<device::Buffer> inputs, outputs;
  for (size_t i = 0; i < in.size(); ++i)
    inputs.push_back(pack(whole_batch(c.in[i], how.batched_in[i], tiles), in[i]));
  for (size_t i = 0; i < c.out.size(); ++i) {
    outputs.emplace_back(whole_batch(c.out[i], how.batched_out[i], tiles).bytes());
    poison(outputs.back());
  }
  const auto at = [&](const TensorDesc& d, const device::Buffer& b, bool batched,
                      int tile) -> void* {
    return b.data() + (batched ? d.bytes() * static_cast<size_t>(tile) : 0);
  };
  const auto out_buffer = [&](size_t i) -> const device::Buffer& {
    return i == 0 && how.in_place ? inputs[0] : outputs[i];
  };
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<GuardedBuffer> states;
  std::vector<void*> state_pointers;
  StepInfo step;
  step.batch = c.in[0].shape[0] * tiles;
  int tile = 0;
  for (size_t t = 0; t < how.tiles.size(); ++t) {
    kernels.push_back(c.make());
    Kernel& kernel = *kernels.back();
    const GuardedBuffer workspace(kernel.workspace_bytes());
    states.emplace_back(kernel.state_bytes());
    const bool own = t == 0 && kernel.state_output() >= 0;
    state_pointers.push_back(
        own ? static_cast<void*>(out_buffer(static_cast<size_t>(kernel.state_output())).data())
            : states.back().data());
    for (int k = 0; k < how.tiles[t]; ++k, ++tile) {
      std::vector<void*> pi, po;
      for (size_t i = 0; i < inputs.size(); ++i)
        pi.push_back(at(c.in[i], inputs[i], how.batched_in[i], tile));
      for (size_t i = 0; i < outputs.size(); ++i)
        po.push_back(at(c.out[i], out_buffer(i), how.batched_out[i], tile));
      KernelArgs args;
      args.in = pi.data();
      args.out = po.data();
      args.workspace = workspace.data();
      args.state = state_pointers.back();
      args.first = k == 0;
      args.first_sample = tile * c.in[0].shape[0];
      args.step = &step;
      kernel.run(args);
    }
    workspace.check(c.name, "workspace");
  }
  std::vector<void*> pi, po;
  for (const device::Buffer& b : inputs) pi.push_back(b.data());
  for (size_t i = 0; i < outputs.size(); ++i) po.push_back(out_buffer(i).data());
  for (int part = 0; part < 2; ++part)
    kernels[0]->finish({pi.data(), po.data(), state_pointers, part, 2, &step});
  for (const GuardedBuffer& state : states) state.check(c.name, "state");
  std::vector<Values> out;
  for (size_t i = 0; i < outputs.size(); ++i)
    out.push_back(unpack(whole_batch(c.out[i], how.batched_out[i], tiles), out_buffer(i)));
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = unpack(whole_batch(c.in[i], how.batched_in[i], tiles), inputs[i]);
  return out;
}

}  // namespace tutti::backend::testing
