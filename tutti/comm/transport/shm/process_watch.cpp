#include "tutti/comm/transport/shm/process_watch.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "tutti/base/process_state.h"

namespace tutti::comm {
namespace {

// kill(pid, 0) succeeds for an ended process that is not yet collected; its state is reliable.
bool alive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  const auto state = process_state(process);
  return !state || state->runs();  // no /proc here: believe kill()
}

}  // namespace

ProcessWatch::ProcessWatch(std::vector<pid_t> processes) : processes_(std::move(processes)) {
  for (pid_t& process : processes_)
    if (process != 0 && !alive(process)) process = 0;
}

bool ProcessWatch::gone(int rank) const { return watches(rank) && !alive(process(rank)); }

}  // namespace tutti::comm
