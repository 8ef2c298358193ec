#pragma once
// Executor: runs a Plan. Owns the memory of results, packed weights and tile scratch, and one
// instance of each kernel per thread; everything is made in the constructor and nothing is
// allocated afterwards.
//
// Training is pack() once, then for each step run() for each local replica (after binding its
// inputs, statistics and gradients) and update(). An update waits for nobody: what has not arrived
// yet is applied by the next run(), bucket by bucket, each just before the first band that reads
// its weights. settle() applies all of it; whoever reads weights or state between steps calls it
// first. Not thread-safe: one caller drives it; inside, an OpenMP team of plan.options.threads does
// the work.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/barrier.h"
#include "tutti/plan/plan.h"
#include "tutti/trace/span.h"

namespace tutti {

/// How the executor meets the exchange of gradients, which it knows nothing about. Called on thread
/// 0, but for help().
struct ExchangeHook {
  // Exchanges with outputs, by their number in Plan::exchanges; a plan that has none needs neither:
  std::function<void(int exchange)> start = {};   ///< its inputs are complete; never blocks
  std::function<void(int exchange)> finish = {};  ///< blocks until its outputs are there

  // Buckets of gradients:
  std::function<void(int bucket)> ready;  ///< this replica's gradients of the bucket are complete
  std::function<void()> poll;             ///< called between bands: make progress, never block
  std::function<void()> help = {};  ///< called by threads that wait for others, again and again:
                                    ///< take part in local work of the calls above; never block
  std::function<bool(int bucket)> arrived =
      {};  ///< whether wait() would return at once; never blocks. Empty: it would
  std::function<const float*(int bucket)> wait =
      {};  ///< blocks until the bucket's sum has arrived, and says where

  // Where updates are sharded (Executor::set_shard):
  /// Replaces each value by its sum over ranks, blocking; each is other than 0 on one rank only.
  /// Buckets come in one order on all ranks.
  std::function<void(int bucket, std::span<float> sums)> sum_norms = {};
  std::function<void(int bucket)> updated =
      {};  ///< this rank's shard of the bucket's weights is new
  std::function<bool(int bucket)> gathered =
      {};  ///< whether gather() would return at once; never blocks
  std::function<void(int bucket)> gather =
      {};  ///< blocks until all shards of the bucket are new here
};

/// The arenas that a replica owns, laid out as Plan::variables says. Borrowed; null: the plan does
/// not use it, or what was bound before stays.
struct ReplicaState {
  void* parameters = nullptr;
  void* statistics = nullptr;
  void* state = nullptr;  ///< of the optimizer
  void* gradients = nullptr;
};

class Executor {
 public:
  /// Throws DeviceError if a kernel cannot be made. The plan must outlive the executor.
  Executor(const Plan& plan, const Backend& backend);
  ~Executor();

  void bind(const ReplicaState& replica);
  void bind_input(Value input, const void* data);
  void set_scalar(Value scalar, float value);
  void set_exchange(ExchangeHook hook) { exchange_ = std::move(hook); }
  /// Limits the update of the bucket's parameters to bytes [begin, end) of its slice of the
  /// parameter arena: weights, gradients and states outside are neither read nor written. Each
  /// bound is an end of the slice, or lies on a block of kSumBlock floats counted from its
  /// parameter's start: parallel/shard.h gives such bounds. The default is the whole slice.
  void set_shard(int bucket, size_t begin, size_t end);

  void pack();
  void run(const StepInfo& step);
  /// Updates the parameters of each bucket whose sum has arrived, and leaves the others to the next
  /// run() or settle(); the scalars must stay as they are until then. Without an exchange the
  /// gradients are used as they lie.
  void update(const StepInfo& step);
  /// Waits for what update() has left.
  void settle();

  /// A marked output, or any result that the plan stores; valid until the next run.
  const void* result(Value v) const;
  /// Where an exchange of the plan sends from and receives to.
  std::byte* address(const Place& place) const {
    return bases_[static_cast<size_t>(place.base)] + place.offset;
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

  void build_steps(const Backend& backend);
  /// The kernels of one thread for tiles of these sizes; raises `needs` to what they need.
  static ReadyStep make_ready(Chosen& chosen, bool first_thread, const std::vector<int64_t>& sizes,
                              Needs& needs);
  void run_thread(int thread, const StepInfo& step);
  void run_band(int thread, size_t band, const StepInfo& step);
  void finish_band(int thread, size_t band, const StepInfo& step);
  void run_whole(ReadyStep& ready, int thread, const StepInfo& step, const Window& window = {});
  int next_bucket(bool may_wait);
  void settle_buckets(bool may_wait);
  void settle_bucket(int thread, int bucket);
  void update_bucket(int thread, int bucket);
  void pack_bucket(int thread, int bucket);
  void check_bound(int bucket, size_t bound) const;
  bool is_sharded(int bucket) const { return shards_[static_cast<size_t>(bucket)].has_value(); }
  Window window_of(int bucket) const;
  void sum_norms(const UpdateStep& update);
  template <class Fn>
  void parallel(Fn fn);

  const Plan& plan_;
  Buffer arena_, packed_, scalars_;
  std::vector<std::byte*> bases_;
  std::vector<std::unique_ptr<Thread>> threads_;
  void meet();  // of the whole team
  Barrier barrier_;
  ExchangeHook exchange_;
  StepInfo updating_;          // the step whose update is going on
  std::vector<int> in_order_;  // the buckets, by their first use
  enum class Stage : uint8_t { settled, to_update, to_pack };
  std::vector<Stage> stages_;  // by bucket; written by thread 0 between barriers
  int next_ = -1;              // thread 0 tells the team
  struct Shard {
    size_t begin = 0, end = 0;  // bytes from the bucket's start
  };
  std::vector<std::optional<Shard>> shards_;  // by bucket; none: everything
  bool profiling_ = false;
  Spans* spans_ = nullptr;
  Spans::Name waiting_ = 0;
};

}  // namespace tutti
