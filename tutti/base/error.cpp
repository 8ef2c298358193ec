#include "tutti/base/error.h"

#include <string_view>

namespace tutti {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  if (const auto at = path.rfind("tutti/"); at != std::string_view::npos) path.remove_prefix(at);
  throw InternalError(fmt::format("{}:{}: broken invariant: {}{}{}", path, line, condition,
                                  message.empty() ? "" : ": ", message));
}

}  // namespace tutti
