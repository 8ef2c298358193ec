#pragma once
// Separates the error stream of MPI's launcher into lines of the ranks and its own banners. The
// launcher prints a banner whenever a rank ends with another status than 0, whatever the reason; so
// banners are held back until it is known whether there is a better explanation of the job's end.
// Its quotations (a folder's name) may hold bytes that a terminal obeys: everything goes through
// visible().

#include <functional>
#include <string>
#include <string_view>

#include "tutti/base/visible.h"

namespace tutti::cli {

class LauncherOutput {
 public:
  using Print = std::function<void(std::string_view)>;
  /// `print` receives everything that is not held back, at once and in order.
  explicit LauncherOutput(Print print) : print_(std::move(print)) {}

  /// Takes bytes of the stream. Bytes of 0, which no terminal shows, are left out: Open MPI 5 puts
  /// one before a rank's first line.
  void take(std::string_view bytes);
  /// Ends the stream. Returns the banners, which the caller prints if nothing else explains the
  /// end.
  std::string finish();

 private:
  void take_text(std::string_view text);
  void end_line();
  void end_block();

  Print print_;
  VisiblePieces visible_;
  std::string line_;     // a line that has begun and may be the launcher's
  bool passed_ = false;  // the beginning of this line is printed already
  std::string block_;    // a banner that has begun
  char frame_ = 0;       // the character of its first and last line; 0: outside of a banner
  int block_lines_ = 0;
  std::string held_;
};

}  // namespace tutti::cli
