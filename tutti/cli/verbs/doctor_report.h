#pragma once
// What `tutti doctor` says: facts of all ranks told in one voice. Facts that all ranks share are
// said once; where they differ each value is said with the ranks that have it.

#include <string>
#include <vector>

#include "tutti/base/json_forward.h"

namespace tutti {

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
  std::vector<std::string> warnings;  ///< what to improve; each says what to do

  void add(std::string title, std::string text, std::string key, const Json& value);
  /// The text is the value.
  void add(std::string title, std::string text, std::string key);
  /// Adds the findings of another look behind those that are there.
  void append(const Findings& more);
};

/// For sending them to rank 0.
std::string to_text(const Findings& findings);
Findings findings_from(const std::string& text);

/// "0-3, 8".
std::string rank_list(const std::vector<int>& ranks);

/// What to say of threads that are together not much faster than one alone; empty when they are.
/// Rates in operations a second.
std::string slow_threads_warning(double one, double all, int threads);

/// Lines for people about the findings of ranks 0, 1, ...; facts in the order of rank 0.
std::string doctor_text(const std::vector<Findings>& ranks);
/// key -> value; where ranks differ, a list of {ranks, value}. "warnings" is a list of texts.
Json doctor_json(const std::vector<Findings>& ranks);

}  // namespace tutti
