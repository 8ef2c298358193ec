#pragma once
// StreamExecutor: runs a Plan on a stream of a device. A step is one call of its kernel over the
// whole batch, so a plan for a device has one thread and tiles as large as its bands.
//
// The host puts work on the stream and goes on. It waits
//   - before a pass, until the pass before the last one and its update are over (PassSlots);
//   - for a result, when result() asks for one, and for what next_readings() is told to wait for;
//   - for each bucket's gradients once a pass is on the stream, if somebody else needs them
//     (Exchanges::gradients_stay()): they go through memory of the host;
//   - for gradients that stay on the device, where somebody looks at them (Exchanges::looks());
//   - in settle(), and where arenas are bound or packed that the host may have changed.
//
// The host puts units on the stream: a pass, an update, or the last pass before
// an update together with that. A unit that comes again and again with the same memory is recorded
// when it comes for the third time, and then replayed: what differs between its replays lies in
// memory (numbers, inputs). Earlier ones are not, because libraries make themselves ready in their
// first calls.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/device/device.h"
#include "tutti/plan/run/bound_mirrors.h"
#include "tutti/plan/run/device_gradients.h"
#include "tutti/plan/run/executor.h"
#include "tutti/plan/run/pass_slots.h"
#include "tutti/plan/run/pending_stages.h"

namespace tutti::plan {

class StreamExecutor final : public Executor {
 public:
  /// Throws ConfigError for a plan whose ranks share updates or layers.
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
  void begin() override {}  // run_bands() makes such copies
  void run_bands(const backend::StepInfo& step, size_t first, size_t last) override;
  void end() override {}
  void update(const backend::StepInfo& step) override;
  void finish_update() override { run_stages(true); }
  using Executor::settle;
  void settle(Kept what) override;

  const void* result(graph::Value v) override;
  std::byte* address(const Place& place) const override;
  std::byte* address(const Place& place, int arena) const override;
  bool runs_ahead() const override { return true; }
  void watch(std::vector<graph::Value> of_pass, std::vector<graph::Value> of_update) override;
  std::optional<Readings> next_readings(Until until) override;
  void set_runs(int per_update) override { runs_per_update_ = per_update; }
  size_t memory_bytes() const override;

  /// Returns how often a run has waited for a slot (PassSlots), among all waits of the device.
  int64_t slot_waits() const { return slots_->waits(); }
  /// Whether units are recorded; they are, unless somebody says no.
  void set_recording(bool on) { records_ = on; }

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
  /// A graph input, and where the host has it.
  struct Input : DeviceInput {
    const void* host = nullptr;
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
  /// A piece of work that is put on the stream at a time: bands [first, last), or an update, or
  /// both.
  struct Unit {
    size_t first = 0, last = 0;
    bool update = false;
    std::vector<GradientFold> folds;
    bool has_pass() const { return last > first; }
  };
  struct Recorded {
    int seen = 0;
    std::unique_ptr<device::Recording> recording;
  };
  // A slot's results: what was found in the gradients, then what is watched.
  static constexpr size_t kMostWatched = DeviceGradients::kMostNumbers,
                          kPassResults = DeviceGradients::kFoundBytes,
                          kUpdateResults = kPassResults + kMostWatched * sizeof(float),
                          kResultBytes = kUpdateResults + kMostWatched * sizeof(float);
  /// A pass or an update whose readings were not returned yet.
  struct Unread {
    int slot = 0;
    bool of_update = false;
  };

  void require_whole_batch() const;
  [[noreturn]] void refuse(const PlanExchange& exchange) const;
  void touch_bases();
  static ReadyStep make_ready(const backend::Backend& backend, const Step& step, int64_t samples);
  void build_steps(const backend::Backend& backend);
  void build_memory(int arenas);
  void build_numbers();
  void build_inputs();
  void build_gradients();
  void bind_sums(std::byte* arena);
  void find_left_to_updates();
  template <class Fn>
  void for_each_step(Fn fn);

  // In stream_executor_run.cpp.
  void launch(ReadyStep& ready);
  void copy_inputs(bool of_pass, std::byte* to);
  void write_pass_numbers(const backend::StepInfo& info, size_t first, size_t last);
  void write_update_numbers();
  void note_written(const Touched& steps);
  void start(int exchange);
  void put_deferred();
  void put(const Unit& unit);
  void put_now(const Unit& unit);
  void put_pass(const Unit& unit);
  void put_look(const Unit& unit);
  bool updates_by_pass(const Unit& unit);
  void put_update(const Unit& unit);
  void stop_update(const Unit& unit);
  const std::byte* gradients_here(const std::byte* arena);
  std::span<std::byte> scalars_there() { return {bases_[kScalars], scalars_.size()}; }
  void copy_watched(const std::vector<graph::Value>& values, std::byte* to);
  std::vector<const void*> key_of(const Unit& unit) const;
  void take_slot();

  // In stream_executor_exchange.cpp: gradients that go through memory of the host.
  void fetch_gradients(int exchange);
  void start_exchanges();
  void receive(int exchange);
  void run_stages(bool may_wait);
  void run_stage(int stage);
  void wait_for_all(std::string_view what);
  /// Whether somebody exchanges gradients in memory of the host.
  bool gradients_leave() const { return exchanges_ && !here_ && !plan_.buckets.empty(); }
  Exchanges* waited_for() const { return here_ ? nullptr : exchanges_; }

  device::Device& device_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<device::Event> reached_;
  BoundMirrors mirrors_;
  Touched pass_, update_;

  std::vector<ReadyStep> packs_, updates_;
  std::vector<std::vector<ReadyStep>> bands_;
  std::vector<device::Memory> arenas_;
  int arena_in_use_ = 0;
  device::Memory packed_, tile_, workspace_;
  std::vector<std::byte*> bases_;
  std::vector<Input> inputs_;
  device::Memory update_inputs_;
  std::map<int32_t, Result> results_;

  // The numbers of a pass, then scalars and the numbers of an update, then those of packs: a pass,
  // an update and both together need one copy of neighbours.
  device::Memory numbers_, pack_numbers_;
  size_t scalars_begin_ = 0, updates_end_ = 0;  // in numbers_
  std::vector<std::byte> scalars_;              // as the host has set them

  std::unique_ptr<PassSlots> slots_;
  bool slot_has_pass_ = false;          // the current slot's update has not begun
  std::optional<Unit> deferred_;        // a pass that is put on the stream with its update
  int runs_ = 0, runs_per_update_ = 1;  // runs since the last update
  bool records_ = true;
  std::map<std::vector<const void*>, Recorded> recordings_;  // by the memory that they use
  std::vector<graph::Value> watched_in_pass_, watched_in_update_;
  std::deque<Unread> unread_;
  bool watches_ = false;

  Exchanges* exchanges_ = nullptr;
  std::vector<std::vector<OwnCopy>> own_copies_;  // by exchange
  std::byte* host_gradients_ = nullptr;
  // Gradients that leave: sums return into the gradients, because a bucket's stage is over before
  // the next pass writes its gradients.
  device::Memory gradients_, staged_;
  std::vector<Outgoing> outgoing_;       // by bucket
  std::vector<int> to_start_;            // exchanges whose gradients are under way
  std::optional<DeviceGradients> here_;  // gradients that stay
  // Results of passes, besides gradients of parameters, that updates read: for tables, the
  // gradients of rows.
  std::vector<graph::Value> left_to_updates_;
  PendingStages pending_;
  backend::StepInfo updating_;  // the step whose update is going on

  bool profiling_ = false;
  trace::Spans* spans_ = nullptr;
  int lane_ = 0;  // in the timeline
};

}  // namespace tutti::plan
