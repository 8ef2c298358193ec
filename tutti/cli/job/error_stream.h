#pragma once
// Standard error, for a process that has to stay awake while whoever reads it sleeps: a pager, a
// terminal that Ctrl-S has stopped, a host that has gone.

#include <string>
#include <string_view>

namespace tutti {

class ErrorStream {
 public:
  ErrorStream();
  ~ErrorStream();
  ErrorStream(const ErrorStream&) = delete;
  ErrorStream& operator=(const ErrorStream&) = delete;

  /// Prints visible(text) and never waits: what the stream does not take now is kept, for push().
  void print(std::string_view text);
  void push();
  /// Something is kept. Whoever prints much then stops until poll(2) says that file() takes bytes.
  bool full() const { return !kept_.empty(); }
  int file() const { return file_; }

 private:
  int own_;   // the same stream, opened anew; -1: it is not one that can be, or need be
  int file_;  // which of the two is written
  std::string kept_;
};

}  // namespace tutti
