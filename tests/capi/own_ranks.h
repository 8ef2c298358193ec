#pragma once
/* For programs that start ranks themselves, without a launcher; none uses all of it. They define
 * _POSIX_C_SOURCE. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { kMostRanksOfOwn = 8 };

/* Returns a port that was free a moment ago. */
static inline int free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof at;
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(bind(s, (struct sockaddr*)&at, sizeof at) == 0 &&
         getsockname(s, (struct sockaddr*)&at, &length) == 0);
  close(s);
  return ntohs(at.sin_port);
}

/* Checks that this rank listens on the loopback address only, as it must if the store is there.
 * Call it before MPI starts. */
static inline void check_listeners(void) {
  int listeners = 0;
  for (int file = 3; file < 256; ++file) {
    struct sockaddr_in at = {0};
    int listens = 0;
    socklen_t size = sizeof listens, length = sizeof at;
    if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) continue;
    EXPECT(getsockname(file, (struct sockaddr*)&at, &length) == 0 && at.sin_family == AF_INET &&
           at.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    ++listeners;
  }
  EXPECT(listeners > 0);
}

/* Runs rank(r, n) in n processes. Returns how many of them do not end as they should: `killed`, if
 * it is one of them, by a signal, and all others with 0. */
static inline int run_ranks(int n, void (*rank_of)(int r, int n), int killed) {
  pid_t ranks[kMostRanksOfOwn];
  int failed = 0;
  EXPECT(n <= kMostRanksOfOwn);
  for (int r = 0; r < n; ++r) {
    ranks[r] = fork();
    if (ranks[r] != 0) continue;
    rank_of(r, n);
    exit(0);
  }
  for (int r = 0; r < n; ++r) {
    int status = 0;
    waitpid(ranks[r], &status, 0);
    const int right =
        r == killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!right) printf("rank %d ended with status %x\n", r, (unsigned)status), ++failed;
  }
  return failed;
}
