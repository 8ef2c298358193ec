#pragma once
// Selection: which algorithm a collective takes when its caller does not say.
//
// A table of lines "collective ranks topology bytes reproducible algorithm"; the first line that
// fits is taken:
//   ranks         an upper bound, or *
//   topology      node: all ranks on one; nodes: on several; *
//   bytes         of the long vector: an upper bound, or *. Lines in rising order make ranges
//   reproducible  yes: for calls that need the order of comm/schedule/tree.h; no: for the others; *
// A line whose algorithm cannot do what is asked for is passed over. `tutti bench comm --tune`
// measures and writes such a table (cli/bench/comm_tuned_lines.h); without a measurement the
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

  /// The built-in table.
  Selection();
  explicit Selection(std::vector<Line> lines) : lines_(std::move(lines)) {}
  /// From text; `source` and the line number name errors (ConfigError). `#` begins a comment.
  static Selection parse(std::string_view text, std::string_view source);
  std::string to_string() const;

  /// The name of an algorithm that does `task`, elements of `element_bytes`; reproducible if it is
  /// `ordered`. The table's first fit, or else the first algorithm at all that does it. Throws
  /// CommError where there is none.
  std::string choose(const Task& task, size_t element_bytes) const;

  /// This table, and `rest` for what it has no line for.
  Selection before(const Selection& rest) const;

 private:
  std::vector<Line> lines_;
};

/// For the log: what `task` among several nodes goes by, and why not by two_level. Empty where it
/// does, where no node has several ranks, and for collectives that have no such algorithm.
std::string explain_choice(const Task& task, size_t element_bytes, std::string_view algorithm);

}  // namespace tutti::comm
