#include "tutti/cli/arguments.h"

#include <algorithm>

namespace tutti {

std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      out.insert(out.end(), arguments.begin() + static_cast<long>(i), arguments.end());
      return out;
    }
    if (!argument.starts_with("--")) {
      out.push_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    std::string rest = equals == std::string::npos ? "" : argument.substr(equals);
    if (name.find('.') == std::string::npos) {
      std::replace(name.begin(), name.end(), '_', '-');
      out.push_back(name == "--resume" && rest.empty() ? "--resume=latest" : name + rest);
      continue;
    }
    std::replace(name.begin() + 2, name.end(), '-', '_');
    if (rest.empty() && i + 1 < arguments.size()) rest = "=" + arguments[++i];
    out.push_back("--set=" + name.substr(2) + rest);
  }
  return out;
}

}  // namespace tutti
