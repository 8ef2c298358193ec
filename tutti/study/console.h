#pragma once
// A run's output: into a file of its folder, and the few lines of it that a failure's message
// needs.

#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::study {

class Console {
 public:
  /// Appends to `path`: a resumed run's output follows the earlier one's. `label`: what stands
  /// before each line that is shown on stderr; empty: none is shown. Throws IoError.
  Console(const std::string& path, std::string label);

  /// A file that takes no more, as on a full disk, gets a warning and is left: the run goes on.
  void take(std::string_view bytes);
  /// No more comes: a last line without an end is taken as one.
  void end();
  /// The last lines, oldest first.
  std::vector<std::string> last_lines() const { return {last_.begin(), last_.end()}; }
  /// Why it failed, in one line: what the first rank that spoke said as its error ("tutti: ..."),
  /// else the last line; empty when nothing was printed.
  std::string cause() const { return error_.empty() ? last_spoken_ : error_; }
  const std::string& path() const { return path_; }

 private:
  void line();
  std::string path_;
  std::ofstream file_;
  std::string label_, text_, error_, last_spoken_;
  std::deque<std::string> last_;
};

}  // namespace tutti::study
