#pragma once
// The whole contract between the plan and the kernels, in two phases: describe and accept
// (Backend::candidates), then run (Kernel). All failures and all allocation happen in the first
// phase.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti {

/// What a step may depend on besides its tensors.
struct StepInfo {
  uint64_t seed = 0;
  int64_t step = 0;     ///< counts weight updates from 0
  int32_t replica = 0;  ///< the logical worker whose batch this is
  int64_t batch = 0;    ///< samples in the replica's whole batch
};

/// A part of the parameters, by address. An update that is limited to it neither reads nor writes
/// elements whose weight lies outside, in the weights, the gradients and the states alike, and
/// every element inside gets the same bits as without a window. For block sums (ops/norm_update.h)
/// both ends must lie between blocks. Default: everything.
struct Window {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;  ///< null: everything
  /// Of the `count` floats at `w`, those inside: indices [first, last).
  std::pair<int64_t, int64_t> inside(const void* w, int64_t count) const {
    if (!end) return {0, count};
    const auto at = [&](const std::byte* bound) {
      const auto bytes =
          static_cast<int64_t>(reinterpret_cast<uintptr_t>(bound) - reinterpret_cast<uintptr_t>(w));
      return std::clamp<int64_t>(bytes / static_cast<int64_t>(sizeof(float)), 0, count);
    };
    return {at(begin), at(end)};
  }
};

/// What a part of a workspace takes, so that the next one begins on a line of the cache.
constexpr size_t workspace_part(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// The threads that share a step (Walk::whole), seen by one of its kernels while it runs.
class Team {
 public:
  virtual ~Team() = default;
  /// Returns once all parts have called it.
  virtual void meet() = 0;
  /// A part's workspace, for what it gives to the others between two meetings.
  virtual void* workspace(int part) const = 0;
};

/// One call of a kernel. A batched operand points at the first sample of the tile, any other at its
/// first element.
struct KernelArgs {
  void* const* in = nullptr;
  void* const* out = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes(), this thread's, contents undefined
  void* state = nullptr;      ///< state_bytes(), this thread's accumulator (Walk::reduce)
  bool first =
      true;  ///< Walk::reduce: this thread's first tile of this run; the state holds nothing yet
  int64_t first_sample = 0;  ///< index in the batch of the tile's first sample
  int part = 0, parts = 1;   ///< Walk::whole: do this share of the work
  const StepInfo* step = nullptr;
  Window window = {};    ///< of updates
  Team* team = nullptr;  ///< Walk::whole: of all parts; null: they are run by themselves
};

/// The end of a reduction: combine the threads' accumulators, always in the same order, into the
/// unbatched outputs.
struct FinishArgs {
  void* const* in = nullptr;  ///< batched operands must not be touched
  void* const* out = nullptr;
  std::span<void* const> states;  ///< of the threads that ran at least one tile, by thread index
  int part = 0, parts = 1;        ///< do this share of the work
  const StepInfo* step = nullptr;
};

/// One op for fixed shapes and layouts. An instance belongs to one thread. run and finish never
/// allocate and never throw.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual size_t workspace_bytes() const { return 0; }
  virtual size_t state_bytes() const { return 0; }
  /// The unbatched output that the accumulator has the size and type of, -1 = none. Thread 0 then
  /// accumulates in that output's own memory and finish adds the other states to it: with one
  /// thread nothing is copied.
  virtual int state_output() const { return -1; }
  /// Works on one tile (dimension 0 of the batched descs), or on one part of the whole.
  virtual void run(const KernelArgs& args) = 0;
  virtual void finish(const FinishArgs&) {}
};

/// What the plan asks: the op, and what is known of its operands. For batched operands dimension 0
/// is the tile.
struct KernelRequest {
  const Op* op = nullptr;
  std::vector<TensorDesc> in, out;
  /// Operands whose layout (and for inputs also whose dtype) the kernel may choose: weights in,
  /// weight gradients out.
  std::vector<bool> in_free, out_free;
  int team = 1;  ///< Walk::whole: threads that will share the step
};

/// What is known of a kernel before it is measured: `slow` ones are correct loops that are fast for
/// nothing, the `oracle` is taken only where nothing else accepts.
enum class KernelSpeed : uint8_t { fast, slow, oracle };

/// One answer: a kernel that can do it, with the descs it wants for the free operands, or a refusal
/// that says why.
struct KernelCandidate {
  std::string name;     ///< "onednn:jit_avx512_core", "cpu:batch_norm", "reference"
  std::string refusal;  ///< empty = accepted
  std::vector<TensorDesc> in, out;
  std::function<std::unique_ptr<Kernel>()> make;
  KernelSpeed speed = KernelSpeed::fast;
  /// How far its results are from exact ones, in multiples of what rounding operands and results to
  /// these types leaves (2-norm, random operands). PlanOptions::most_error limits it.
  double error = 1;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// All kernels considered, best guess first, refusals included.
  virtual std::vector<KernelCandidate> candidates(const KernelRequest& request) const = 0;
  /// Layouts worth trying for an activation of this shape and type, preferred first; the plan
  /// measures among them.
  virtual std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const = 0;
  /// Fast memory private to one core, in bytes: what a tile should fit into.
  virtual size_t tile_bytes() const { return size_t{1} << 20; }
};

}  // namespace tutti
