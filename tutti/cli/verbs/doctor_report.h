#pragma once
// The report of `tutti doctor` over all ranks. A fact that all ranks share is printed once; where
// ranks differ each value is printed with the ranks that have it.

#include <string>
#include <vector>

#include "tutti/base/json_forward.h"
#include "tutti/device/cuda_library.h"

namespace tutti::cli {

/// One fact of one rank.
struct Fact {
  std::string title;  ///< "topology"
  std::string text;   ///< for people
  std::string key;    ///< for programs
  std::string value;  ///< JSON text for programs
};

/// All that one rank found.
struct Findings {
  std::vector<Fact> facts;
  std::vector<std::string> warnings;  ///< improvements; each text gives a remedy

  void add(std::string title, std::string text, std::string key, const Json& value);
  /// Uses the text as the value.
  void add(std::string title, std::string text, std::string key);
  /// Appends the findings of another examination.
  void append(const Findings& more);
};

/// Adds the GPUs that this process can compute on, or why there are none.
void add_gpus(Findings& findings, const device::CudaReport& report);

/// Converts findings to text and back, to send them to rank 0.
std::string to_text(const Findings& findings);
Findings findings_from(const std::string& text);

/// Returns "0-3, 8".
std::string rank_list(const std::vector<int>& ranks);

/// Returns a warning for threads that together are not much faster than one alone; empty when they
/// are. Rates in operations a second.
std::string slow_threads_warning(double one, double all, int threads);

/// Returns lines for people about the findings of ranks 0, 1, ...; facts in the order of rank 0.
std::string doctor_text(const std::vector<Findings>& ranks);
/// Returns key -> value; where ranks differ, a list of {ranks, value}. "warnings" is a list of
/// texts.
Json doctor_json(const std::vector<Findings>& ranks);

}  // namespace tutti::cli
