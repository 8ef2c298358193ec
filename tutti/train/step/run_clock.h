#pragma once
// Measures a run's time: wall-clock seconds in named parts, as the run record needs them.

#include <chrono>
#include <optional>

namespace tutti::train {

/// Seconds of training steps, by the rank's activity. Compute is the time of the plan's run without
/// the waits in it.
struct StepTimes {
  double total = 0, compute = 0, comm_exposed = 0, data_wait = 0;
  double other() const { return total - compute - comm_exposed - data_wait; }
  StepTimes& operator+=(const StepTimes& more) {
    total += more.total;
    compute += more.compute;
    comm_exposed += more.comm_exposed;
    data_wait += more.data_wait;
    return *this;
  }
};

/// The run's two clocks. Both start at the first weight update; `train` stands still during
/// evaluations and checkpoints.
class RunClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts at the readings that an earlier part of the run had reached.
  void start(double wall_seconds, double train_seconds) {
    started_ = Clock::now();
    wall_before_ = wall_seconds;
    train_before_ = train_seconds;
  }
  /// Two readings that belong together must use the same `now`.
  double wall(Clock::time_point now = Clock::now()) const {
    return wall_before_ + between(started_, now);
  }
  double train(Clock::time_point now = Clock::now()) const {
    return train_before_ + (standing_ ? *standing_ : between(started_, now)) - paused_;
  }
  /// Stops the training clock from here to add_pause(), so that a checkpoint, which stores its
  /// reading, does not count a part of its own writing.
  void stand_still() { standing_ = since(started_); }
  /// Adds time that does not count as training.
  void add_pause(double seconds) {
    paused_ += seconds;
    standing_.reset();
  }

  static double since(Clock::time_point begin) { return between(begin, Clock::now()); }

 private:
  static double between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }

  Clock::time_point started_ = Clock::now();
  double wall_before_ = 0, train_before_ = 0, paused_ = 0;
  std::optional<double> standing_;
};

}  // namespace tutti::train
