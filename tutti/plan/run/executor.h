#pragma once
// Executor: runs a Plan. It owns the memory of results, packed weights and scratch, and the
// kernels; everything is made by its constructor and nothing is allocated by a step.
//
// Training is pack() once, then for each step run() for each local replica (after binding its
// inputs, statistics and gradients) and update(). An update does not wait: stages whose exchanges
// are not over yet are run by the next run(), one by one (PlanStage), each just before the first
// band that reads its weights. finish_update() runs all of them. A pass may be run in pieces, and
// several passes be under way, each with an arena of results of its own: begin(), run_bands() as
// often as it takes, end(). Not thread-safe: one caller drives it.
//
// All that training keeps lies in memory of the host, which bind() names. An executor on a device
// works on copies there (device/mirrors.h), which all executors on that device share. So the host
// calls settle() before it reads or changes what training keeps, and pack() after it has changed
// any of it; between the two it may do as it likes. Before another executor uses the same memory,
// settle() or result() of this one returns.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/plan/plan.h"
#include "tutti/plan/run/exchanges.h"
#include "tutti/trace/span.h"

namespace tutti::plan {

/// The arenas that a replica owns, laid out as Plan::variables says, in memory of the host.
/// Borrowed. Null: the plan does not use the arena, or the one bound before stays.
struct ReplicaState {
  void* parameters = nullptr;
  void* tables = nullptr;
  void* statistics = nullptr;
  void* state = nullptr;  ///< optimizer state
  /// The arena that exchanges of gradients send from; on a device nothing else is written there.
  void* gradients = nullptr;
};

/// Numbers that a pass or an update has left for the host (Executor::watch()).
struct Readings {
  bool of_update = false;
  std::span<const float> numbers{};  ///< valid until the next run()
  /// For a pass whose gradients stay on a device: the index, in their arena, of the first float
  /// that is not finite, after which updates leave the weights as they are; -1: there is none.
  int64_t bad_gradient = -1;
  /// For a pass: its inputs in memory of the host, by Plan::inputs, valid until the next run();
  /// null for those that it does not read.
  std::vector<const void*> inputs{};
};

/// How long Executor::next_readings() waits.
enum class Until : uint8_t {
  over,  ///< not at all
  room,  ///< until the next run() does not wait and overwrites none
  all    ///< until there are none left
};

/// Parts of what training keeps.
enum class Kept : uint8_t { statistics, all };

class Executor {
 public:
  virtual ~Executor() = default;

  virtual void bind(const ReplicaState& replica) = 0;
  /// Borrows memory of the host, which the next passes and updates read.
  virtual void bind_input(graph::Value input, const void* data) = 0;
  /// Sets a scalar. Not allowed while an update has stages left, because they read it.
  virtual void set_scalar(graph::Value scalar, float value) = 0;
  /// Sets the object that makes the plan's exchanges from now on; it must outlive the executor's
  /// use. Without one, gradients are used as they lie, and a plan whose bands wait for exchanges
  /// cannot run.
  virtual void set_exchanges(Exchanges& exchanges) = 0;

  /// Packs the weights, after the host has changed some of what is bound.
  virtual void pack() = 0;
  /// Runs all bands.
  void run(const backend::StepInfo& step);
  /// Selects the arena that a pass in pieces reads and writes from now on.
  virtual void use_arena(int arena) = 0;
  virtual int arena() const = 0;
  virtual int arenas() const = 0;
  /// Begins the exchanges that need nothing from this rank; nothing of the arena may be in use.
  virtual void begin() = 0;
  /// Runs bands [first, last).
  virtual void run_bands(const backend::StepInfo& step, size_t first, size_t last) = 0;
  /// Waits for exchanges that no band has waited for.
  virtual void end() = 0;
  /// Runs the stages of the update whose exchanges are over, and leaves the others to the next
  /// run() or finish_update(); the scalars must stay as they are until then.
  virtual void update(const backend::StepInfo& step) = 0;
  /// Runs the stages that update() has left, waiting for their exchanges.
  virtual void finish_update() = 0;
  /// Does the same, and waits until nothing is under way. The statistics, or also weights, tables
  /// and optimizer state, in memory of the host are then those that training has come to.
  virtual void settle(Kept what) = 0;
  void settle() { settle(Kept::all); }

  /// Returns a marked output, any result that the plan stores, or an input, in memory of the host;
  /// valid until the next run. Waits for it.
  virtual const void* result(graph::Value v) = 0;
  /// Returns where an exchange of the plan sends from and receives to; not for sums of gradients,
  /// and not on a device.
  virtual std::byte* address(const Place& place) const = 0;
  /// Returns the address of a place in the arena of another pass than the one in use.
  virtual std::byte* address(const Place& place, int arena) const = 0;
  /// Whether passes and updates go on after the call that begins them has returned, so that
  /// numbers are better watched than asked for by result().
  virtual bool runs_ahead() const { return false; }
  /// From now on each pass and each update leaves these results, single f32 numbers that the plan
  /// stores, to next_readings(). Only if it runs ahead.
  virtual void watch(std::vector<graph::Value> /*of_pass*/,
                     std::vector<graph::Value> /*of_update*/) {}
  /// Returns what the oldest pass or update has left whose readings were not returned yet. Nothing:
  /// there is none, or it is not over. With watch(), they must be taken as far as Until::room
  /// before each run().
  virtual std::optional<Readings> next_readings(Until /*until*/) { return {}; }
  /// Says how many runs come before each update: the last of them may begin with it.
  virtual void set_runs(int /*per_update*/) {}
  /// Returns the bytes owned, where the kernels run: results, packed weights, scratch, workspace
  /// and accumulators; on a device also gradients, inputs and scalars.
  virtual size_t memory_bytes() const = 0;

  /// Switches profiling. With it take_timings() returns the seconds of each step (packs, bands,
  /// finishes, updates) since the last call, by name, for the first thread of a team; otherwise
  /// nothing. A device is then waited for after each step.
  virtual void set_profiling(bool on) = 0;
  /// Records every call of a kernel from now on, one lane per thread; null ends that. `spans` must
  /// outlive the executor's use. On a device a span is the time in which work is put on the stream.
  virtual void set_spans(trace::Spans* spans) = 0;
  struct Timing {
    std::string name, kernel;
    double seconds = 0;
  };
  virtual std::vector<Timing> take_timings() = 0;

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

 protected:
  explicit Executor(const Plan& plan) : plan_(plan) {}

  const Plan& plan_;
};

/// Makes the executor for where the backend's kernels run: a team of threads, or a device's stream.
/// Throws DeviceError if a kernel cannot be made, or memory is short. Plan and backend must outlive
/// the executor. `arenas` is the number of passes that may be under way at a time.
std::unique_ptr<Executor> make_executor(const Plan& plan, const backend::Backend& backend,
                                        int arenas = 1);

}  // namespace tutti::plan
