#include "tutti/base/process_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

namespace tutti {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::optional<ProcessState> parse_process_state(std::string_view line) {
  const size_t name_end = line.rfind(')');  // the name may hold anything, a bracket as well
  if (name_end == line.npos) return std::nullopt;
  std::istringstream fields{std::string(line.substr(name_end + 1))};
  ProcessState process;
  fields >> process.state >> process.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> process.began;
  if (fields.fail()) return std::nullopt;
  return process;
}

std::optional<ProcessState> process_state(pid_t process) {
  std::string line;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), line);
  return parse_process_state(line);
}

}  // namespace tutti
