#include "tutti/base/error.h"

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
  const char* advice = error == ENOSPC || error == EDQUOT
                           ? "; free some space or choose another directory"
                       : error == EFBIG ? "; raise the limit on file sizes (ulimit -f)"
                                        : "";
  return fmt::format("{}{}", std::strerror(error), advice);
}

}  // namespace tutti
