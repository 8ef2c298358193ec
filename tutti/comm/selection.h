#pragma once
// Selection: which algorithm a collective takes when its caller does not say.
//
// A table of lines "collective ranks nodes bytes algorithm": the first line that fits is taken, where ranks, nodes and bytes are upper
// bounds or `*`. `tutti bench comm --tune` measures and writes one; without a measurement the built-in table applies.

#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/schedule.h"

namespace tutti::comm {

class Selection {
 public:
  struct Line {
    Collective kind = Collective::allreduce;
    size_t ranks = 0;  ///< upper bounds; 0: any
    size_t nodes = 0;
    size_t bytes = 0;  ///< of the long vector
    std::string algorithm;
  };

  /// The built-in table.
  Selection();
  /// From text; `source` and the line number name errors (ConfigError). `#` begins a comment.
  static Selection parse(std::string_view text, std::string_view source);
  std::string to_string() const;

  /// The name of an algorithm that does `task`, elements of `element_bytes`; reproducible if asked for. The table's first fit, or else the
  /// first algorithm at all that does it. Throws CommError where there is none.
  std::string choose(const Task& task, size_t element_bytes, bool reproducible) const;

  /// In front of all others.
  void prefer(Line line) { lines_.insert(lines_.begin(), std::move(line)); }

 private:
  explicit Selection(std::vector<Line> lines) : lines_(std::move(lines)) {}

  std::vector<Line> lines_;
};

}  // namespace tutti::comm
