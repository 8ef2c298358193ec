#pragma once
// Ranks as processes that a test starts, over a store that it serves.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

#include "tutti/base/patience.h"
#include "tutti/comm/bootstrap/tcp_store.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti::comm {

using RankOfJob = std::function<int(int rank, Store& store)>;

// Starts the ranks before this process has a thread, and then the store. Returns their exit codes;
// for a process that a signal ended, 128 plus the signal.
inline std::vector<int> run_processes(int size, const RankOfJob& rank) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  std::vector<pid_t> processes;
  for (int p = 0; p < size; ++p) {
    const pid_t process = fork();
    if (process == 0) {
      int port = 0;
      if (read(pipe[0], &port, sizeof port) != sizeof port) _exit(99);
      int code = 98;
      try {
        TcpStore store("127.0.0.1", port, "secret", kHangSeconds);
        code = rank(p, store);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      std::fflush(nullptr);
      _exit(code);
    }
    processes.push_back(process);
  }
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  const int port = server.port();
  for (int p = 0; p < size; ++p)
    EXPECT_EQ(write(pipe[1], &port, sizeof port), ssize_t{sizeof port});
  std::vector<int> codes;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(pipe[0]);
  close(pipe[1]);
  return codes;
}

inline StoreOptions options_with(bool shared_memory) {
  return {
      .process = {.shared_memory = shared_memory, .timeout = kHangSeconds, .address = "127.0.0.1"},
      .secret = "secret"};
}

}  // namespace tutti::comm
