#pragma once
// What a person sees while training runs: a bar that redraws itself on a terminal, plain lines
// anywhere else. Lines go through the log (time stamp, rank 0 only); with a log level below info
// nothing is shown. Machines read the run record instead.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "tutti/base/visible.h"

namespace tutti {

/// Where the run stands. Rates and times are those of the steps since the last report.
struct ProgressState {
  double elapsed_s = 0;           ///< since first_step, evaluation and checkpoints included
  int64_t first_step = 0;         ///< where this run began: not 0 after a resume
  int64_t step = 0, steps = 0;    ///< updates done, and in the whole run
  int64_t epoch = 0, epochs = 0;  ///< under way, from 1, and in the whole run; epochs 0: unknown
  double loss = 0;                ///< training loss; NaN: not known, the bar goes without it
  std::string quality{};          ///< last measured on the test set, "accuracy 91.20 %"
  double learning_rate = 0;
  double samples_per_s = 0;             ///< of all ranks
  double step_ms = 0;                   ///< mean time of a step
  double exposed_communication_ms = 0;  ///< part of it spent waiting for other ranks' gradients
  double input_stall_ms = 0;            ///< part of it spent waiting for data
};

/// One line for the log, which with the time in front fits 100 columns: epoch, step, loss, learning
/// rate, samples/s, remaining time, and the parts of a step spent waiting where they are worth a
/// word.
std::string progress_line(const ProgressState& state);
/// At most `columns` characters: a bar and as many numbers as fit, the most important first.
std::string progress_bar(const ProgressState& state, int columns);
/// Of an epoch and a rank.
struct EpochReading {
  double seconds = 0;  ///< of the epoch
  double waited = 0;   ///< of them, for data
  double reading = 0;  ///< of processor time, of all reader threads
};
/// Says that readers do not keep up, and how many cores would: what reading has taken of a core,
/// while the steps alone would have taken so long. Empty where little was waited.
std::string waiting_line(const EpochReading& epoch);
/// Seconds that remain at the mean speed so far; none before the first step.
std::optional<double> remaining_s(const ProgressState& state);
/// "45 s", "4:31", "1:02:03".
std::string duration_text(double seconds);

/// For one thread.
class ProgressDisplay {
 public:
  struct Settings {
    bool terminal = false;            ///< whether `out` is one that can erase a line
    int columns = 80;                 ///< of the terminal, where it does not say so itself
    std::FILE* out = plain_errors();  ///< not owned; where the log goes too
    double redraw_every_s = 0.1;
  };

  explicit ProgressDisplay(Settings settings) : s_(settings) {}
  ~ProgressDisplay() { clear(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// After every step; cheap. Redraws the bar when it is time, and does nothing where there is no
  /// terminal.
  void step(const ProgressState& state);
  /// Every run.log_every steps: a line, unless the bar shows the same.
  void report(const ProgressState& state);
  /// Something to keep, such as the result of an evaluation: a line in either case.
  void note(const std::string& text);
  /// Removes the bar; call before anything else writes to the terminal.
  void clear();

 private:
  Settings s_;
  bool drawn_ = false;
  double last_drawn_s_ = -1e9;
};

}  // namespace tutti
