#pragma once
// Executor: runs a Plan. Owns the memory of results, packed weights and tile scratch, and one
// instance of each kernel per thread; everything is made in the constructor and nothing is
// allocated afterwards.
//
// Training is pack() once, then for each step run() for each local replica (after binding its
// inputs, statistics and gradients) and update(). An update waits for nobody: what has not arrived
// yet is applied by the next run(), stage by stage (PlanStage), each just before the first band
// that reads its weights. settle() applies all of it; whoever reads weights or state between steps
// calls it first. A pass may be run in pieces, and several of them be under way, each with an arena
// of results of its own: begin(), run_bands() as often as it takes, end(). Not thread-safe: one
// caller drives it; inside, an OpenMP team of plan.options.threads does the work.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/barrier.h"
#include "tutti/plan/exchanges.h"
#include "tutti/plan/plan.h"
#include "tutti/trace/span.h"

namespace tutti {

/// The arenas that a replica owns, laid out as Plan::variables says. Borrowed; null: the plan does
/// not use it, or what was bound before stays.
struct ReplicaState {
  void* parameters = nullptr;
  void* tables = nullptr;
  void* statistics = nullptr;
  void* state = nullptr;  ///< of the optimizer
  void* gradients = nullptr;
};

class Executor {
 public:
  /// Throws DeviceError if a kernel cannot be made. The plan must outlive the executor. `arenas`:
  /// passes that may be under way at a time.
  Executor(const Plan& plan, const Backend& backend, int arenas = 1);
  ~Executor();

  void bind(const ReplicaState& replica);
  void bind_input(Value input, const void* data);
  /// Not while an update has stages left, which read it.
  void set_scalar(Value scalar, float value);
  /// Who makes the plan's exchanges from now on; must outlive the executor's use. Without anybody
  /// gradients are used as they lie, and a plan whose bands wait for exchanges cannot run.
  void set_exchanges(Exchanges& exchanges) { exchanges_ = &exchanges; }

  void pack();
  void run(const StepInfo& step);
  /// Of a pass in pieces: whose results are read and written from now on.
  void use_arena(int arena);
  int arena() const { return arena_in_use_; }
  int arenas() const { return static_cast<int>(arenas_.size()); }
  /// Begins what is received without anything of this rank's: nothing of the arena may be in use.
  void begin();
  /// Bands [first, last).
  void run_bands(const StepInfo& step, size_t first, size_t last);
  /// Waits for exchanges that no band has waited for.
  void end();
  /// Runs those stages of the update whose exchanges are over, and leaves the others to the next
  /// run() or settle(); the scalars must stay as they are until then.
  void update(const StepInfo& step);
  /// Waits for what update() has left.
  void settle();

  /// A marked output, or any result that the plan stores; valid until the next run.
  const void* result(Value v) const;
  /// Where an exchange of the plan sends from and receives to; not of sums of gradients.
  std::byte* address(const Place& place) const {
    return bases_[static_cast<size_t>(place.base)] + place.offset;
  }
  /// The same of a place in the arena, for another pass than the one in use.
  std::byte* address(const Place& place, int arena) const {
    return arenas_[static_cast<size_t>(arena)].data() + place.offset;
  }
  /// Bytes owned: results, packed weights, and each thread's scratch, workspace and accumulators.
  size_t memory_bytes() const;

  /// Seconds thread 0 spent in each step (packs, bands, finishes, updates) since the last call, by
  /// name; empty unless profiling.
  void set_profiling(bool on);
  /// Records every call of a kernel from now on, one lane a thread; null: no longer. `spans` must
  /// outlive the executor's use.
  void set_spans(Spans* spans);
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

  void build_steps(const Backend& backend);
  /// The kernels of one thread for tiles of these sizes; raises `needs` to what they need.
  static ReadyStep make_ready(Chosen& chosen, bool first_thread, const std::vector<int64_t>& sizes,
                              Needs& needs);
  void run_thread(int thread, const StepInfo& step, size_t first, size_t last);
  void run_band(int thread, size_t band, const StepInfo& step);
  void wait_before(int thread, const PlanBand& band);
  /// Unless it has done so for less than `after`.
  void poll_exchanges(std::chrono::microseconds after = std::chrono::microseconds(0));
  struct Tile;
  void run_tile(int thread, size_t band, const StepInfo& step, const Tile& tile);
  void finish_band(int thread, size_t band, const StepInfo& step);
  void run_whole(ReadyStep& ready, int thread, const StepInfo& step, const Window& window = {});
  int next_stage(bool may_wait);
  void run_stages(bool may_wait);
  void run_stage(int thread, int stage);
  void receive(int exchange);
  void check_range(int bucket, const ExchangeOutput::Range& range) const;
  Window window_of(const PlanStage& stage) const;
  bool is_pending(int stage) const { return pending_[static_cast<size_t>(stage)] != 0; }
  template <class Fn>
  void parallel(Fn fn);

  const Plan& plan_;
  std::vector<Buffer> arenas_;
  int arena_in_use_ = 0;
  Buffer packed_, scalars_;
  std::vector<std::byte*> bases_;
  std::vector<std::unique_ptr<Thread>> threads_;
  void meet();  // of the whole team
  Barrier barrier_;
  std::unique_ptr<Sharing> sharing_;
  Exchanges* exchanges_ = nullptr;
  std::chrono::steady_clock::time_point polled_{};
  StepInfo updating_;          // the step whose update is going on
  std::vector<char> pending_;  // by stage of that update; written by thread 0 between barriers
  int next_ = -1;              // thread 0 tells the team
  std::vector<std::optional<ExchangeOutput::Range>> ranges_;  // by bucket
  bool profiling_ = false;
  Spans* spans_ = nullptr;
  Spans::Name waiting_ = 0;
};

}  // namespace tutti
