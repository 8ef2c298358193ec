// The program: it runs a verb (command_line.h), and this is how an error ends.

#include <unistd.h>

#include <algorithm>
#include <exception>

#include "tutti/base/log.h"
#include "tutti/cli/command_line.h"
#include "tutti/cli/launcher_watch.h"
#include "tutti/cli/lifetime.h"
#include "tutti/cli/terminal.h"

int main(int argc, char** argv) {
  if (const auto code = tutti::run_launcher_watch(argc, argv)) return *code;
  tutti::begin_process({argv + 1, argv + argc});
  const tutti::Terminal screen = tutti::terminal_of(STDERR_FILENO);
  if (screen.present)
    tutti::log::set_style({.color = screen.color, .columns = std::min(screen.columns, 100)});
  try {
    return tutti::end_process(tutti::run_command_line({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    return tutti::fail(error);
  }
}
