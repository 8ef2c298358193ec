#include "tutti/cli/job/error_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "tutti/base/visible.h"

namespace tutti::cli {
namespace {

// O_NONBLOCK belongs to the opened file, which other programs share: so it is opened again. Other
// programs may fill a pipe after poll has reported space, and a terminal takes a part.
int open_errors_anew() {
  struct stat about {};
  if (fstat(STDERR_FILENO, &about) != 0) return -1;
  if (!S_ISFIFO(about.st_mode) && isatty(STDERR_FILENO) == 0) return -1;
  return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

ErrorStream::ErrorStream() : own_(open_errors_anew()), file_(own_ < 0 ? STDERR_FILENO : own_) {}

ErrorStream::~ErrorStream() {
  if (own_ >= 0) close(own_);
}

void ErrorStream::print(std::string_view text) {
  kept_ += visible(text);
  push();
}

void ErrorStream::push() {
  size_t taken = 0;
  while (taken < kept_.size()) {
    pollfd room{file_, POLLOUT, 0};
    if (poll(&room, 1, 0) == 0) break;
    // A pipe with space takes that much at once, also one that could not be opened again.
    const size_t part = std::min<size_t>(kept_.size() - taken, PIPE_BUF);
    const ssize_t count = write(file_, kept_.data() + taken, part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return kept_.clear();  // nobody can read it any more
    taken += static_cast<size_t>(count);
  }
  kept_.erase(0, taken);
}

}  // namespace tutti::cli
