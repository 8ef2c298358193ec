#include "tutti/comm/shm/process_watch.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <fstream>
#include <utility>

namespace tutti::comm {
namespace {

// kill(pid, 0) succeeds for a zombie; its state in /proc/<pid>/stat, after the parenthesised name,
// does not lie.
bool alive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return true;  // no /proc here: believe kill()
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return true;
  const char state = line[name_end + 2];
  return state != 'Z' && state != 'X';
}

}  // namespace

ProcessWatch::ProcessWatch(std::vector<pid_t> processes) : processes_(std::move(processes)) {
  for (pid_t& process : processes_)
    if (process != 0 && !alive(process)) process = 0;
}

bool ProcessWatch::gone(int rank) const { return watches(rank) && !alive(process(rank)); }

}  // namespace tutti::comm
