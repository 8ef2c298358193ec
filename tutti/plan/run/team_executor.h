#pragma once
// TeamExecutor: runs a Plan on an OpenMP team of plan.options.threads, in memory of the host. Each
// thread has one instance of each kernel.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/run/barrier.h"
#include "tutti/plan/run/executor.h"
#include "tutti/plan/run/pending_stages.h"

namespace tutti::plan {

class TeamExecutor final : public Executor {
 public:
  TeamExecutor(const Plan& plan, const backend::Backend& backend, int arenas);
  ~TeamExecutor() override;

  void bind(const ReplicaState& replica) override;
  void bind_input(graph::Value input, const void* data) override;
  void set_scalar(graph::Value scalar, float value) override;
  void set_exchanges(Exchanges& exchanges) override { exchanges_ = &exchanges; }

  void pack() override;
  void use_arena(int arena) override;
  int arena() const override { return arena_in_use_; }
  int arenas() const override { return static_cast<int>(arenas_.size()); }
  void begin() override;
  void run_bands(const backend::StepInfo& step, size_t first, size_t last) override;
  void end() override;
  void update(const backend::StepInfo& step) override;
  void finish_update() override { run_stages(true); }
  using Executor::settle;
  void settle(Kept) override { finish_update(); }

  const void* result(graph::Value v) override;
  std::byte* address(const Place& place) const override {
    return bases_[static_cast<size_t>(place.base)] + place.offset;
  }
  std::byte* address(const Place& place, int arena) const override {
    return arenas_[static_cast<size_t>(arena)].data() + place.offset;
  }
  size_t memory_bytes() const override;

  void set_profiling(bool on) override;
  void set_spans(trace::Spans* spans) override;
  std::vector<Timing> take_timings() override;

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
  void run_stages(bool may_wait);
  void run_stage(int thread, int stage);
  void receive(int exchange);
  void check_range(int bucket, const ExchangeOutput::Range& range) const;
  backend::Window window_of(const PlanStage& stage) const;
  template <class Fn>
  void parallel(Fn fn);

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
  PendingStages pending_;       // stages of that update; written by thread 0 between barriers
  int next_ = -1;               // the stage that thread 0 has chosen for the team
  std::vector<std::optional<ExchangeOutput::Range>> ranges_;  // by bucket
  bool profiling_ = false;
  trace::Spans* spans_ = nullptr;
  trace::Spans::Name waiting_ = 0;
};

}  // namespace tutti::plan
