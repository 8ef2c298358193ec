#include "tutti/base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace tutti {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  if (const auto at = path.rfind("tutti/"); at != std::string_view::npos) path.remove_prefix(at);
  throw InternalError(fmt::format("{}:{}: broken invariant: {}{}{}", path, line, condition,
                                  message.empty() ? "" : ": ", message));
}

namespace {

/// Returns advice for an errno; empty if the system's message says all.
std::string_view file_advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "free some space or choose another directory";
    case EROFS: return "choose another directory";
    case EFBIG: return "raise the limit on file sizes (ulimit -f)";
    case ENFILE:
      return "the whole node has too many files open: end what keeps them, or have fs.file-max "
             "raised";
    case EACCES:
    case EPERM: return "look at the rights of the file and of the folders above it (ls -ld)";
    case EIO: return "the disk or the file server fails: try again, and look at dmesg";
    case ESTALE: return "the file was replaced on its file server: start again";
    case EISDIR: return "give a file, not a folder";
    case ELOOP: return "its symbolic links lead round in a circle: remove one of them";
    default: return {};
  }
}

}  // namespace

std::string file_error(int error) {
  const std::string_view advice = file_advice(error);
  if (rlimit files{}; error == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
    return fmt::format("{}; this process may have {} open: raise the limit (ulimit -n)",
                       std::strerror(error), files.rlim_cur);
  return fmt::format("{}{}{}", std::strerror(error), advice.empty() ? "" : "; ", advice);
}

}  // namespace tutti
