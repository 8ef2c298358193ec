#include "tutti/cli/flags/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace tutti::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int columns_of(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(std::string(variable("COLUMNS")).c_str());
  return columns > 0 ? columns : 80;
}

}  // namespace

Terminal terminal_of(int descriptor) {
  Terminal terminal;
  terminal.present = isatty(descriptor) != 0;
  terminal.erases = terminal.present && !variable("TERM").empty() && variable("TERM") != "dumb";
  terminal.color = terminal.erases && variable("NO_COLOR").empty();
  terminal.columns = columns_of(descriptor);
  return terminal;
}

}  // namespace tutti::cli
