#pragma once
// The whole contract between the plan and the kernels, in two phases: the plan describes an op and
// kernels accept it (Backend::candidates), then kernels run (Kernel). All failures and all
// allocation happen in the first phase.

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

namespace tutti::device {
class Device;
class Mirrors;
class Stream;
}  // namespace tutti::device

namespace tutti::backend {

/// The inputs of a step besides its tensors.
struct StepInfo {
  uint64_t seed = 0;
  int64_t step = 0;     ///< counts weight updates from 0
  int32_t replica = 0;  ///< the logical worker whose batch it is
  int64_t batch = 0;    ///< samples in the replica's whole batch
};

/// A part of the parameters, by address. An update that is limited to it neither reads nor writes
/// elements whose weight lies outside, in the weights, the gradients and the states, and every
/// element inside gets the same bits as without a window. For block sums (ops/norm_update.h) both
/// ends must lie between blocks. Default: everything.
struct Window {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;  ///< null: everything
  /// Returns which of the `count` floats at `w` lie inside: indices [first, last).
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

/// Returns the size of a part of a workspace, such that the next part begins on a cache line.
constexpr size_t workspace_part(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// The threads that share a step (Walk::whole), for one of its kernels while it runs.
class Team {
 public:
  virtual ~Team() = default;
  /// Returns once all parts have called it.
  virtual void meet() = 0;
  /// Returns a part's workspace, for data that it passes to the others between two meetings.
  virtual void* workspace(int part) const = 0;
};

/// The arguments of one call. A batched operand points at the first sample of the tile, any other
/// at its first element.
struct KernelArgs {
  void* const* in = nullptr;
  void* const* out = nullptr;
  void* workspace = nullptr;  ///< this thread's workspace_bytes(), contents undefined
  void* state = nullptr;      ///< this thread's accumulator, state_bytes() (Walk::reduce)
  bool first =
      true;  ///< Walk::reduce: this thread's first tile of this run; the state holds nothing yet
  int64_t first_sample = 0;     ///< index in the batch of the tile's first sample
  int thread = 0, threads = 1;  ///< Walk::whole: do this thread's share of the work
  const StepInfo* step = nullptr;
  Window window = {};    ///< limits updates
  Team* team = nullptr;  ///< Walk::whole: the team of all parts; null: parts run by themselves
  /// The stream that the kernel puts its work on (Backend::device); all operands are then memory of
  /// the device, the tile is the whole batch, and `state`, `team` and `step` are not there.
  device::Stream* stream = nullptr;
  /// With a stream: number_bytes() in memory of the device, as write_numbers() has written them
  /// for this pass; the kernel may change them.
  std::byte* numbers = nullptr;
};

/// The arguments of a reduction's end: combine the threads' accumulators, always in the same order,
/// into the unbatched outputs.
struct FinishArgs {
  void* const* in = nullptr;  ///< batched operands must not be touched
  void* const* out = nullptr;
  std::span<void* const> states;  ///< states of the threads that ran at least one tile, by thread
                                  ///< index
  int thread = 0, threads = 1;    ///< do this thread's share of the work
  const StepInfo* step = nullptr;
};

/// One op for fixed shapes and layouts. An instance belongs to one thread. run and finish never
/// allocate and never throw. With a stream, run puts work on it and returns, the operands are used
/// when the work happens, and a kernel that reduces writes its outputs itself: finish is not
/// called. Its work may be recorded, so it takes what changes from step to step from `numbers`
/// alone.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Returns the bytes of what the kernel needs to know of each step, for kernels on a stream.
  virtual size_t number_bytes() const { return 0; }
  /// Writes these bytes, at a multiple of 16. Called by the host before the kernel's work happens.
  virtual void write_numbers(const StepInfo&, std::byte*) const {}
  virtual size_t workspace_bytes() const { return 0; }
  virtual size_t state_bytes() const { return 0; }
  /// Returns the unbatched output that the accumulator has the size and type of, -1 = none. Thread
  /// 0 then accumulates in that output's own memory and finish adds the other states to it: with
  /// one thread nothing is copied.
  virtual int state_output() const { return -1; }
  /// Works on one tile (dimension 0 of the batched descs), or on one part of the whole.
  virtual void run(const KernelArgs& args) = 0;
  virtual void finish(const FinishArgs&) {}
};

/// The plan's request: an op, and the known facts about its operands. For batched operands
/// dimension 0 is the tile.
struct KernelRequest {
  const graph::Op* op = nullptr;
  std::vector<TensorDesc> in, out;
  /// Operands whose layout (and for inputs also whose dtype) the kernel may choose: weights in,
  /// weight gradients out.
  std::vector<bool> in_free, out_free;
  int team = 1;  ///< Walk::whole: threads that will share the step
};

/// The speed of a kernel as known before it is measured: a `slow` kernel is correct but optimised
/// for nothing, the `oracle` is taken only if nothing else accepts.
enum class KernelSpeed : uint8_t { fast, slow, oracle };

/// The outcome of running a kernel beside one that is known to be right.
struct KernelTrial {
  std::string refusal;  ///< why it is not taken; empty: it agrees
  std::string result;   ///< how far it agrees, for people
};

/// One answer: a kernel that accepts, with the descs it wants for the free operands, or a refusal
/// that gives the reason.
struct KernelCandidate {
  std::string name;     ///< "onednn:jit_avx512_core", "cpu:batch_norm", "reference"
  std::string refusal;  ///< empty = accepted
  std::vector<TensorDesc> in, out;
  std::function<std::unique_ptr<Kernel>()> make;
  KernelSpeed speed = KernelSpeed::fast;
  /// The distance of its results from exact ones, as a multiple of the error from rounding operands
  /// and results to these types (2-norm, random operands). PlanOptions::most_error limits it.
  double error = 1;
  /// For a kernel of a library: runs it beside one of ours on numbers of its own, which takes a
  /// while and waits. It must be called before the kernel is first taken. Null: it needs no trial.
  std::function<KernelTrial()> trial = {};
  /// The device and the versions of the libraries with which `name` means something; empty: always.
  std::string versions = {};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Returns all kernels considered, best guess first, refusals included.
  virtual std::vector<KernelCandidate> candidates(const KernelRequest& request) const = 0;
  /// Returns layouts worth trying for an activation of this shape and type, preferred first; the
  /// plan measures them.
  virtual std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const = 0;
  /// Returns the bytes of fast memory private to one core: a tile should fit into it.
  virtual size_t tile_bytes() const { return size_t{1} << 20; }
  /// Whether a backward pass should compute again what is cheap, such as a normalisation, in place
  /// of reading it: right where a tile stays in a core's cache, a pass more where memory is fast.
  virtual bool repeats_cheap_ops() const { return true; }
  /// Whether a move of elements that reads another's result should be one op with it: right where
  /// each op is a launch.
  virtual bool joins_moves() const { return false; }
  /// Returns the device on whose streams the kernels run; null: they run on the threads that call
  /// them.
  virtual device::Device* device() const { return nullptr; }
  /// Returns the copies of the host's memory on that device; null without one.
  virtual device::Mirrors* mirrors() const { return nullptr; }
};

}  // namespace tutti::backend
