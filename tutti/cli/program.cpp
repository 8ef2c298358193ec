#include "tutti/cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/denormals.h"
#include "tutti/cli/command_line.h"
#include "tutti/cli/flags/terminal.h"
#include "tutti/cli/job/launcher_watch.h"
#include "tutti/cli/job/lifetime.h"
#include "tutti/cli/job/start_affinity.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/plan/team_places.h"

namespace tutti {

int run_program(int argc, char** argv) {
  if (const auto code = run_launcher_watch(argc, argv)) return *code;
  flush_denormals();  // before there is any other thread
  restore_start_affinity();
  limit_teams(team_processors());
  begin_process({argv + 1, argv + argc});
  const Terminal screen = terminal_of(STDERR_FILENO);
  if (screen.present)
    log::set_style({.color = screen.color, .columns = std::min(screen.columns, 100)});
  try {
    return end_process(run_command_line({argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return fail(DeviceError(
        "not enough memory: an allocation failed; take smaller batches or fewer replicas a rank, "
        "or look at this job's limits (ulimit -a, cgroups)"));
  } catch (const std::exception& error) {
    return fail(error);
  }
}

}  // namespace tutti
