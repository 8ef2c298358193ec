#pragma once
// For tests: makes the kernel refuse given system calls to a process, as a container's filter or an
// odd file system does.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace tutti {

/// From now on these calls of this thread, and of threads and processes that it starts, fail with
/// `error`. Returns whether the kernel takes the filter.
inline bool refuse_calls(std::initializer_list<int> calls, int error) {
  const auto word = [](unsigned code, unsigned value, unsigned char yes = 0,
                       unsigned char no = 0) -> sock_filter {
    return {static_cast<unsigned short>(code), yes, no, value};
  };
  std::vector<sock_filter> filter = {
      word(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr)))};
  for (const int call : calls) {
    filter.push_back(word(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(word(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  }
  filter.push_back(word(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Runs `holds` in a child to which these calls are refused. Returns 0 if it returned true, 1 if
/// false, 2 if the kernel took no filter, 3 after an exception; the wait status if the child did
/// not exit.
template <class Holds>
int with_refused(std::initializer_list<int> calls, int error, Holds holds) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 3;
    try {
      code = !refuse_calls(calls, error) ? 2 : holds() ? 0 : 1;
    } catch (...) {  // the child must not go on with other tests
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

}  // namespace tutti
