#pragma once
// A run's output: writes it into a file of its folder, and keeps the few lines that a failure's
// message needs.

#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::study {

class Console {
 public:
  /// Appends to `path`, so a resumed run's output follows the earlier one's. `label` is printed
  /// before each line that is shown on stderr; empty: no line is shown. Throws IoError.
  Console(const std::string& path, std::string label);

  /// Takes more output. If the file takes no more, as on a full disk, it warns and drops the rest:
  /// the run goes on.
  void take(std::string_view bytes);
  /// Call this at the end: an unfinished last line counts as a line.
  void end();
  /// Returns the last lines, oldest first.
  std::vector<std::string> last_lines() const { return {last_.begin(), last_.end()}; }
  /// Returns the reason of a failure in one line: the first rank's error ("tutti: ..."), or else
  /// the last line; empty if nothing was printed.
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
