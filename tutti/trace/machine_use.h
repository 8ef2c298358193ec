#pragma once
// How other work on the machine disturbs a measurement, in numbers and in words.

#include <limits>
#include <span>
#include <string>

#include "tutti/base/json_forward.h"

namespace tutti::trace {

/// Shares of an interval, from 0 to 1; NaN: not measured.
struct MachineUse {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double seconds = kNone;
  double other_work = kNone;  ///< the processors' time taken by other processes
  double steal = kNone;       ///< the processors' time given to other machines
  double throttled = kNone;   ///< a quota's periods in which it stopped the process
};

/// A kind of disturbance of measurements.
struct Disturbance {
  double MachineUse::*share;
  double least;       ///< share from which it is reported
  const char* words;  ///< "Other work took {} of the processors"
};
std::span<const Disturbance> disturbances();

/// Returns the three shares under the names that they have in all JSON: other_work, steal,
/// throttled.
Json machine_json(const MachineUse& use);

/// Returns the disturbance as the beginning of a sentence, "Other work took 40 % of the
/// processors"; empty if the machine was as good as free.
std::string disturbance(const MachineUse& use);

/// Returns the whole sentence: "Other work took 40 % of the processors: these times say little".
/// Empty as above.
std::string disturbance_sentence(const MachineUse& use);

}  // namespace tutti::trace
