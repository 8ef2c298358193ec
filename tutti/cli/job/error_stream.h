#pragma once
// Standard error, for a process that must not block while its reader sleeps: a pager, a terminal
// that Ctrl-S has stopped, a host that has gone.

#include <string>
#include <string_view>

namespace tutti::cli {

class ErrorStream {
 public:
  ErrorStream();
  ~ErrorStream();
  ErrorStream(const ErrorStream&) = delete;
  ErrorStream& operator=(const ErrorStream&) = delete;

  /// Prints visible(text) and never waits: bytes that the stream does not take now are kept, for
  /// push().
  void print(std::string_view text);
  void push();
  /// Returns whether bytes are kept. A caller that prints much then stops until poll(2) reports
  /// that file() takes bytes.
  bool full() const { return !kept_.empty(); }
  int file() const { return file_; }

 private:
  int own_;   // the same stream, opened again; -1: it cannot be, or need not be
  int file_;  // the one of the two that is written
  std::string kept_;
};

}  // namespace tutti::cli
