#pragma once
// The abilities of the terminal that a person looks at. The environment is read here: NO_COLOR,
// TERM.

namespace tutti::cli {

struct Terminal {
  bool present = false;  ///< the stream is a terminal
  bool erases = false;   ///< it understands escape sequences: TERM is neither dumb nor missing
  bool color = false;    ///< it erases, and NO_COLOR is not set (https://no-color.org)
  int columns = 80;      ///< width of the terminal; else COLUMNS, else 80
};

/// Examines an open file descriptor, such as STDERR_FILENO.
Terminal terminal_of(int descriptor);

}  // namespace tutti::cli
