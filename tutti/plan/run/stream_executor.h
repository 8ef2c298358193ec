#pragma once
// StreamExecutor: runs a Plan on a stream of a device. A step is one call of its kernel over the
// whole batch, so a plan for a device has one thread and tiles as large as its bands.
//
// The host puts work on the stream and goes on. It waits
//   - for a result, when result() asks for one;
//   - for each bucket's gradients once a pass is on the stream, if somebody exchanges them: they go
//     through memory of the host;
//   - in settle(), and where arenas are bound or packed that the host may have changed;
//   - if it is so far ahead that the last batch, or the numbers of four steps, are not copied yet.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tutti/device/device.h"
#include "tutti/plan/run/bound_mirrors.h"
#include "tutti/plan/run/executor.h"
#include "tutti/plan/run/number_block.h"
#include "tutti/plan/run/pending_stages.h"

namespace tutti::plan {

class StreamExecutor final : public Executor {
 public:
  /// Throws ConfigError for a plan whose ranks exchange other values than gradients.
  StreamExecutor(const Plan& plan, const backend::Backend& backend, int arenas);
  /// Waits for what is under way.
  ~StreamExecutor() override;

  void bind(const ReplicaState& replica) override;
  void bind_input(graph::Value input, const void* data) override;
  void set_scalar(graph::Value scalar, float value) override;
  void set_exchanges(Exchanges& exchanges) override;

  void pack() override;
  void use_arena(int arena) override;
  int arena() const override { return arena_in_use_; }
  int arenas() const override { return static_cast<int>(arenas_.size()); }
  void begin() override {}  // all such exchanges are between parts
  void run_bands(const backend::StepInfo& step, size_t first, size_t last) override;
  void end() override {}
  void update(const backend::StepInfo& step) override;
  void finish_update() override { run_stages(true); }
  using Executor::settle;
  void settle(Kept what) override;

  const void* result(graph::Value v) override;
  std::byte* address(const Place& place) const override;
  std::byte* address(const Place& place, int arena) const override;
  size_t memory_bytes() const override;

  void set_profiling(bool on) override;
  void set_spans(trace::Spans* spans) override;
  std::vector<Timing> take_timings() override;

 private:
  /// A step's kernel.
  struct ReadyStep {
    const Step* step = nullptr;
    std::unique_ptr<backend::Kernel> kernel;
    std::vector<void*> in, out;  // the arguments of the call being made
    size_t numbers = 0;          // offset in numbers_
    double seconds = 0;
    trace::Spans::Name span = 0;
  };
  /// The bases that some of the plan's steps use, and those that they change, by Base.
  struct Touched {
    std::vector<bool> used, changed;
    void add(const Step& step);
  };
  /// A graph input: where the host has it, and its copies.
  struct Input {
    const void* host = nullptr;
    device::Memory pinned, memory;
    bool in_pass = false;  // the bands read it; otherwise updates alone
  };
  /// A result that the host has asked for.
  struct Result {
    device::Memory pinned;
    std::string what;
  };
  /// A bucket's gradients on their way to the host.
  struct Outgoing {
    std::unique_ptr<device::Event> copied;
    std::string what;
  };

  void require_whole_batch() const;
  void touch_bases();
  static ReadyStep make_ready(const backend::Backend& backend, const Step& step, int64_t samples);
  void build_steps(const backend::Backend& backend);
  void build_memory(int arenas);
  void build_numbers();
  template <class Fn>
  void for_each_step(Fn fn);

  void launch(ReadyStep& ready);
  void send_pass_numbers(const backend::StepInfo& info, size_t first, size_t last);
  void send_update_numbers();
  void send_inputs(bool of_pass);
  void note_written(const Touched& steps);
  void fetch_gradients(int exchange);
  void start_exchanges();
  void receive(int exchange);
  void run_stages(bool may_wait);
  void run_stage(int stage);
  void wait_for_all(std::string_view what);

  device::Device& device_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<device::Event> reached_, inputs_sent_;
  BoundMirrors mirrors_;
  Touched pass_, update_;

  std::vector<ReadyStep> packs_, updates_;
  std::vector<std::vector<ReadyStep>> bands_;
  std::vector<device::Memory> arenas_;
  int arena_in_use_ = 0;
  device::Memory packed_, tile_, workspace_;
  std::vector<std::byte*> bases_;
  std::vector<Input> inputs_;
  bool inputs_under_way_ = false;  // inputs_sent_ has been recorded
  std::map<int32_t, Result> results_;

  // The numbers of a pass, then scalars, then the numbers of an update, then those of packs: each
  // needs one copy of neighbours.
  std::unique_ptr<NumberBlock> numbers_;
  size_t scalars_begin_ = 0, scalars_end_ = 0, updates_end_ = 0;  // in numbers_
  std::vector<std::byte> scalars_;                                // as the host has set them

  Exchanges* exchanges_ = nullptr;
  std::byte* host_gradients_ = nullptr;
  // Sums return into the gradients, because a bucket's stage is over before the next pass writes
  // its gradients.
  device::Memory gradients_, staged_;
  std::vector<Outgoing> outgoing_;  // by bucket
  std::vector<int> to_start_;       // exchanges whose gradients are under way
  PendingStages pending_;
  backend::StepInfo updating_;  // the step whose update is going on

  bool profiling_ = false;
  trace::Spans* spans_ = nullptr;
  int lane_ = 0;  // in the timeline
};

}  // namespace tutti::plan
