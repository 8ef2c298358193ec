#pragma once
// The output for a person while training runs: a bar that redraws itself on a terminal, plain lines
// anywhere else. Lines go through the log (time stamp, rank 0 only); with a log level below info
// nothing is shown. Programs read the run record instead.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "tutti/base/visible.h"

namespace tutti::train {

/// The progress of a run. Rates and times cover the steps since the last report.
struct ProgressState {
  double elapsed_s = 0;           ///< since first_step, evaluation and checkpoints included
  int64_t first_step = 0;         ///< first step of this run: not 0 after a resume
  int64_t step = 0, steps = 0;    ///< updates done, and in the whole run
  int64_t epoch = 0, epochs = 0;  ///< the current epoch, from 1, and their total; epochs 0: unknown
  double loss = 0;                ///< training loss; NaN: unknown, the bar omits it
  std::string quality{};          ///< last measured on the test set, "accuracy 91.20 %"
  double learning_rate = 0;
  double samples_per_s = 0;             ///< over all ranks
  double step_ms = 0;                   ///< mean time of a step
  double exposed_communication_ms = 0;  ///< time of a step spent waiting for other ranks' gradients
  double input_stall_ms = 0;            ///< time of a step spent waiting for data
};

/// Returns one line for the log, at most 100 columns with the time in front: epoch, step, loss,
/// learning rate, samples/s, remaining time, and the parts of a step spent waiting if they are
/// noticeable.
std::string progress_line(const ProgressState& state);
/// Returns at most `columns` characters: a bar and as many numbers as fit, the most important
/// first.
std::string progress_bar(const ProgressState& state, int columns);
/// An epoch's reading times on one rank.
struct EpochReading {
  double seconds = 0;  ///< length of the epoch
  double waited = 0;   ///< part of it spent waiting for data
  double reading = 0;  ///< processor time of all reader threads
};
/// Reports that readers do not keep up, and how many cores would: compares the processor time of
/// reading with the time of the steps alone. Empty if little time was spent waiting.
std::string waiting_line(const EpochReading& epoch);
/// Returns the seconds that remain at the mean speed so far; nothing before the first step.
std::optional<double> remaining_s(const ProgressState& state);
/// Formats a duration as "45 s", "4:31" or "1:02:03".
std::string duration_text(double seconds);

/// Used by one thread.
class ProgressDisplay {
 public:
  struct Settings {
    bool terminal = false;            ///< whether `out` is a terminal that can erase a line
    int columns = 80;                 ///< width of a terminal that does not report it
    std::FILE* out = plain_errors();  ///< not owned; the log's destination
    double redraw_every_s = 0.1;
  };

  explicit ProgressDisplay(Settings settings) : s_(settings) {}
  ~ProgressDisplay() { clear(); }
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Call after every step; cheap. Redraws the bar when it is due, and does nothing without a
  /// terminal.
  void step(const ProgressState& state);
  /// Call every run.log_every steps: writes a line, unless the bar shows the same.
  void report(const ProgressState& state);
  /// Writes a line to keep, such as the result of an evaluation, with or without a terminal.
  void note(const std::string& text);
  /// Removes the bar; call it before anything else writes to the terminal.
  void clear();

 private:
  Settings s_;
  bool drawn_ = false;
  double last_drawn_s_ = -1e9;
};

}  // namespace tutti::train
