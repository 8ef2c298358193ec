#pragma once
// CompressionTrial: does compression pay on this machine, for this network? Dense and compressed
// steps alternate (D C C D D C C D ...), so that drift of the machine affects both, and the
// exchange's cost per step is compared.
//
// The cost of a step on one rank is the time for which the exchange kept it from computing: blocked
// in waits, plus coding on the computing thread (coding by progress threads costs only the wait for
// it). A step lasts as long as on the slowest rank, so a step's cost is the maximum over the ranks;
// each kind's cost is the median over its steps. The first step of each kind is left out. The
// answer depends on timing, so the decision is made once, reported in the log, and kept by the
// caller in checkpoints, as the times are before it.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/compress/report.h"

namespace tutti::exchange {

class CompressionTrial {
 public:
  /// Takes `pairs` dense and as many compressed steps, after one step of each kind that is not
  /// counted. 1 to 250 pairs.
  explicit CompressionTrial(int pairs = 10);

  bool complete() const { return static_cast<int>(seconds_.size()) == steps(); }
  int steps() const { return 2 * pairs_ + 2; }
  /// Returns whether the next step exchanges compressed gradients; the same on every rank. CHECKs
  /// that the trial is not complete.
  bool compressed() const;
  /// Records this rank's times of that step: seconds blocked in waits for the exchange, without the
  /// coding done in them, and seconds of coding (CompressionReport::caller_seconds).
  void record(double blocked_seconds, double caller_seconds);

  /// Collective. Makes each time recorded so far that of the slowest rank, the same on every rank.
  void combine(comm::Communicator& communicator);
  /// Returns the seconds of each step so far; for a checkpoint, after combine().
  const std::vector<double>& seconds() const { return seconds_; }
  /// Goes on after these steps, at most steps() of them.
  void restore(std::vector<double> seconds);

  struct Verdict {
    bool pays = false;
    double dense_seconds = 0;       ///< per step: the slowest rank's blocked time
    double compressed_seconds = 0;  ///< per step: the slowest rank's blocked and coding time
    double break_even = 0;  ///< comm::break_even_bandwidth of the rank with the highest codec time,
                            ///< bytes per second
    /// Returns "off: dense blocks 1.20 ms a step, topk:0.01 blocks and codes 3.40 ms; breaks even
    /// at 0.31 GB/s (2.5 Gb/s) a rank".
    std::string to_string(const std::string& compression) const;
  };
  /// Collective; call it when complete. The result is the same on every rank. `report` covers this
  /// rank's compressed steps.
  Verdict decide(comm::Communicator& communicator, const comm::CompressionReport& report);

 private:
  int pairs_;
  std::vector<double> seconds_;
};

}  // namespace tutti::exchange
