#pragma once
// The machine's work beside a measurement, and what is to be said of it before its numbers.

#include <limits>
#include <span>
#include <string>

#include "tutti/base/json_forward.h"

namespace tutti {

/// Shares of an interval, from 0 to 1; NaN: not measured.
struct MachineUse {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double seconds = kNone;
  double other_work = kNone;  ///< of the processors' time, taken by other processes
  double steal = kNone;       ///< of it, given to other machines by the hypervisor
  double throttled = kNone;   ///< of the periods of a quota, those in which it stopped the process
};

/// A way in which a machine disturbs what is measured on it.
struct Disturbance {
  double MachineUse::*share;
  double least;       ///< from which on it is said
  const char* words;  ///< "Other work took {} of the processors"
};
std::span<const Disturbance> disturbances();

/// The three shares under the names that they have in all JSON: other_work, steal, throttled.
Json machine_json(const MachineUse& use);

/// "Other work took 40 % of the processors": what makes times say little, as the beginning of a
/// sentence; empty where the machine was as good as free.
std::string disturbance(const MachineUse& use);

/// The whole sentence: "Other work took 40 % of the processors: these times say little". Empty as
/// above.
std::string disturbance_sentence(const MachineUse& use);

}  // namespace tutti
