#pragma once
// Executor: runs a Plan. Owns the memory of results, packed weights and tile scratch, and one
// instance of each kernel per thread; everything is made in the constructor and nothing is
// allocated afterwards.
//
// Training is pack() once, then for each step run() for each local replica (after binding its
// inputs, statistics and gradients) and update(). An update does not wait: stages whose exchanges
// are not over yet are run by the next run(), one by one (PlanStage), each just before the first
// band that reads its weights. settle() runs all of them; call it before reading weights or state
// between steps. A pass may be run in pieces, and several passes be under way, each with an
// arena of results of its own: begin(), run_bands() as often as it takes, end(). Not thread-safe:
// one caller drives it; inside, an OpenMP team of plan.options.threads does the work.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/barrier.h"
#include "tutti/plan/exchanges.h"
#include "tutti/plan/plan.h"
#include "tutti/trace/span.h"

namespace tutti::plan {

/// The arenas that a replica owns, laid out as Plan::variables says. Borrowed. Null: the plan does
/// not use the arena, or the one bound before stays.
struct ReplicaState {
  void* parameters = nullptr;
  void* tables = nullptr;
  void* statistics = nullptr;
  void* state = nullptr;  ///< optimizer state
  void* gradients = nullptr;
};

class Executor {
 public:
  /// Throws DeviceError if a kernel cannot be made. The plan must outlive the executor. `arenas` is
  /// the number of passes that may be under way at a time.
  Executor(const Plan& plan, const backend::Backend& backend, int arenas = 1);
  ~Executor();

  void bind(const ReplicaState& replica);
  void bind_input(graph::Value input, const void* data);
  /// Sets a scalar. Not allowed while an update has stages left, because they read it.
  void set_scalar(graph::Value scalar, float value);
  /// Sets the object that makes the plan's exchanges from now on; it must outlive the executor's
  /// use. Without one, gradients are used as they lie, and a plan whose bands wait for exchanges
  /// cannot run.
  void set_exchanges(Exchanges& exchanges) { exchanges_ = &exchanges; }

  void pack();
  void run(const backend::StepInfo& step);
  /// Selects the arena that a pass in pieces reads and writes from now on.
  void use_arena(int arena);
  int arena() const { return arena_in_use_; }
  int arenas() const { return static_cast<int>(arenas_.size()); }
  /// Begins the exchanges that need nothing from this rank; nothing of the arena may be in use.
  void begin();
  /// Runs bands [first, last).
  void run_bands(const backend::StepInfo& step, size_t first, size_t last);
  /// Waits for exchanges that no band has waited for.
  void end();
  /// Runs the stages of the update whose exchanges are over, and leaves the others to the next
  /// run() or settle(); the scalars must stay as they are until then.
  void update(const backend::StepInfo& step);
  /// Runs the stages that update() has left, waiting for their exchanges.
  void settle();

  /// Returns a marked output, or any result that the plan stores; valid until the next run.
  const void* result(graph::Value v) const;
  /// Returns where an exchange of the plan sends from and receives to; not for sums of gradients.
  std::byte* address(const Place& place) const {
    return bases_[static_cast<size_t>(place.base)] + place.offset;
  }
  /// Returns the address of a place in the arena of another pass than the one in use.
  std::byte* address(const Place& place, int arena) const {
    return arenas_[static_cast<size_t>(arena)].data() + place.offset;
  }
  /// Returns the bytes owned: results, packed weights, and each thread's scratch, workspace and
  /// accumulators.
  size_t memory_bytes() const;

  /// Switches profiling. With it take_timings() returns the seconds that thread 0 spent in each
  /// step (packs, bands, finishes, updates) since the last call, by name; otherwise nothing.
  void set_profiling(bool on);
  /// Records every call of a kernel from now on, one lane per thread; null ends that. `spans` must
  /// outlive the executor's use.
  void set_spans(trace::Spans* spans);
  struct Timing {
    std::string name, kernel;
    double seconds = 0;
  };
  std::vector<Timing> take_timings();

 private:
  struct ReadyStep;
  struct Thread;
  struct Chosen;
  struct Needs;
  class Sharing;

  void build_steps(const backend::Backend& backend);
  /// Makes the kernels of one thread for tiles of these sizes; raises `needs` to what they need.
  static ReadyStep make_ready(Chosen& chosen, bool first_thread, const std::vector<int64_t>& sizes,
                              Needs& needs);
  void run_thread(int thread, const backend::StepInfo& step, size_t first, size_t last);
  void run_band(int thread, size_t band, const backend::StepInfo& step);
  void wait_before(int thread, const PlanBand& band);
  /// Polls, unless the last poll was less than `after` ago.
  void poll_exchanges(std::chrono::microseconds after = std::chrono::microseconds(0));
  struct Tile;
  void run_tile(int thread, size_t band, const backend::StepInfo& step, const Tile& tile);
  void finish_band(int thread, size_t band, const backend::StepInfo& step);
  void run_whole(ReadyStep& ready, int thread, const backend::StepInfo& step,
                 const backend::Window& window = {});
  int next_stage(bool may_wait);
  void run_stages(bool may_wait);
  void run_stage(int thread, int stage);
  void receive(int exchange);
  void check_range(int bucket, const ExchangeOutput::Range& range) const;
  backend::Window window_of(const PlanStage& stage) const;
  bool is_pending(int stage) const { return pending_[static_cast<size_t>(stage)] != 0; }
  template <class Fn>
  void parallel(Fn fn);

  const Plan& plan_;
  std::vector<device::Buffer> arenas_;
  int arena_in_use_ = 0;
  device::Buffer packed_, scalars_;
  std::vector<std::byte*> bases_;
  std::vector<std::unique_ptr<Thread>> threads_;
  void meet();  // called by the whole team
  Barrier barrier_;
  std::unique_ptr<Sharing> sharing_;
  Exchanges* exchanges_ = nullptr;
  std::chrono::steady_clock::time_point polled_{};
  backend::StepInfo updating_;  // the step whose update is going on
  std::vector<char> pending_;   // by stage of that update; written by thread 0 between barriers
  int next_ = -1;               // the stage that thread 0 has chosen for the team
  std::vector<std::optional<ExchangeOutput::Range>> ranges_;  // by bucket
  bool profiling_ = false;
  trace::Spans* spans_ = nullptr;
  trace::Spans::Name waiting_ = 0;
};

}  // namespace tutti::plan
