#pragma once
// Selection: chooses the algorithm of a collective when its caller names none.
//
// A table of lines "collective ranks topology bytes reproducible algorithm"; the first line that
// fits is taken:
//   ranks         an upper bound, or *
//   topology      node: all ranks on one; nodes: on several; *
//   bytes         of the long vector: an upper bound, or *. Lines in rising order make ranges
//   reproducible  yes: for calls that need the order of comm/schedule/tree.h; no: for the others; *
// A line whose algorithm cannot do the task is passed over. `tutti bench comm --tune`
// measures and writes such a table (cli/bench/comm_tune.h); without a measurement the
// built-in one applies.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

class Selection {
 public:
  struct Line {
    Collective kind = Collective::allreduce;
    size_t ranks = 0;                       ///< upper bound; 0: any
    std::optional<bool> one_node = {};      ///< empty: any
    size_t bytes = 0;                       ///< upper bound; 0: any
    std::optional<bool> reproducible = {};  ///< empty: any
    std::string algorithm;
  };

  /// Takes the built-in table.
  Selection();
  explicit Selection(std::vector<Line> lines) : lines_(std::move(lines)) {}
  /// Reads a table; errors (ConfigError) name `source` and the line number. `#` begins a comment.
  static Selection parse(std::string_view text, std::string_view source);
  std::string to_string() const;

  /// Returns the name of an algorithm that does `task` with elements of `element_bytes`,
  /// reproducibly if it is `ordered`: by the first line that fits, or else the first algorithm at
  /// all that does it. Throws CommError where there is none.
  std::string choose(const Task& task, size_t element_bytes) const;

  /// Returns this table, followed by `rest` for tasks without a line here.
  Selection before(const Selection& rest) const;

 private:
  std::vector<Line> lines_;
};

/// Explains for the log which algorithm `task` takes among several nodes, and why not two_level.
/// Returns nothing where it takes two_level, where no node has several ranks, and for collectives
/// that two_level does not do.
std::string explain_choice(const Task& task, size_t element_bytes, std::string_view algorithm);

}  // namespace tutti::comm
