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

std::string file_error(int error) {
  std::string advice;
  if (error == ENOSPC || error == EDQUOT)
    advice = "; free some space or choose another directory";
  else if (error == EROFS)
    advice = "; choose another directory";
  else if (error == EFBIG)
    advice = "; raise the limit on file sizes (ulimit -f)";
  else if (rlimit files{}; error == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
    advice =
        fmt::format("; this process may have {} open: raise the limit (ulimit -n)", files.rlim_cur);
  else if (error == ENFILE)
    advice = "; all processes of this machine together have too many open (sysctl fs.file-max)";
  return std::strerror(error) + advice;
}

}  // namespace tutti
