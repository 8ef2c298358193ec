#pragma once
// What comes from the error stream of MPI's launcher: lines of the ranks, and its own banners. It
// prints a banner whenever a rank ends with another status than 0, whatever the reason; so banners
// are held back until it is known whether something else has said better why the job ended. What it
// quotes (a folder's name) may hold bytes that a terminal obeys: all goes through visible().

#include <functional>
#include <string>
#include <string_view>

#include "tutti/base/visible.h"

namespace tutti {

class LauncherOutput {
 public:
  using Print = std::function<void(std::string_view)>;
  /// `print` gets everything that is not held back, at once and in order.
  explicit LauncherOutput(Print print) : print_(std::move(print)) {}

  /// Bytes of 0, which no terminal shows, are left out: Open MPI 5 puts one before the first line
  /// of a rank.
  void take(std::string_view bytes);
  /// The stream is over. The banners, which the caller prints where nothing else explains the end.
  std::string finish();

 private:
  void take_text(std::string_view text);
  void end_line();
  void end_block();

  Print print_;
  VisiblePieces visible_;
  std::string line_;     // begun, and perhaps the launcher's
  bool passed_ = false;  // what came of this line is printed already
  std::string block_;    // of a banner that has begun
  char frame_ = 0;       // the character that its first and last line consist of; 0: outside
  int block_lines_ = 0;
  std::string held_;
};

}  // namespace tutti
