/* A rank that fails to serve its memory is told so by its next call for that memory, as a failure
 * and not as a mistake of its own. This program starts its ranks itself, and makes the operating
 * system refuse a connection. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "own_ranks.h"

static volatile int refuses; /* connections, from now on, but for what the first caller proves */
static int admitted;
static int port;

/* Instead of the one of the system, for the library too. */
int epoll_ctl(int poll, int operation, int descriptor, struct epoll_event* event) {
  static int (*of_system)(int, int, int, struct epoll_event*);
  if (!of_system) *(void**)&of_system = dlsym(RTLD_NEXT, "epoll_ctl");
  if (!refuses || operation != EPOLL_CTL_ADD || admitted++ == 0)
    return of_system(poll, operation, descriptor, event);
  errno = ENOSPC;
  return -1;
}

/* Rank 1 asks rank 2, which it has not talked to before: control messages of three ranks go by way
 * of rank 0, and so does the word that rank 2 is ready. */
static void be_rank(int r, int n) {
  char address[40];
  const tutti_comm_init_options options = {
      .size = sizeof options, .timeout = kHangSeconds, .private_memory = 1, .address = "127.0.0.1"};
  tutti_comm_memory* memory = NULL;
  float x = 1;
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  OK(tutti_comm_init_tcp(address, "secret", r, n, &options));
  find_world();
  OK(tutti_comm_expose(world, sizeof x, NULL, &memory));
  if (rank == 0) {
    OK(tutti_comm_receive(world, &x, sizeof x, 2, 0, NULL));
    OK(tutti_comm_send(world, &x, sizeof x, 1, 0));
  } else if (rank == 1) {
    OK(tutti_comm_receive(world, &x, sizeof x, 0, 0, NULL));
    EXPECT(tutti_comm_put(memory, &x, sizeof x, 2, 0) == TUTTI_COMM_ERROR_FAILED);
  } else if (rank == 2) {
    /* Nothing but its memory is to find the connection: so it does not wait for the message to
     * leave. */
    tutti_comm_plan* ready = NULL;
    refuses = 1;
    OK(tutti_comm_plan_send(world, &x, sizeof x, 0, 0, 0, NULL, &ready));
    OK(tutti_comm_start(ready));
    int status = TUTTI_COMM_OK;
    while (status == TUTTI_COMM_OK) {
      tutti_comm_plan* plan = NULL;
      status = tutti_comm_plan_get(memory, &x, sizeof x, rank, 0, 0, NULL, &plan);
      OK(tutti_comm_plan_destroy(plan));
    }
    FAILS(TUTTI_COMM_ERROR_FAILED, "epoll_ctl", status);
    FAILS(TUTTI_COMM_ERROR_FAILED, "requests of other ranks",
          tutti_comm_put(memory, &x, sizeof x, rank, 0));
    OK(tutti_comm_plan_destroy(ready)); /* in flight, after a failure */
  }
  OK(tutti_comm_memory_free(memory));
  /* Those that have failed leave alone, and rank 0 finds that they have left. */
  EXPECT(tutti_comm_finalize() == (rank == 0 ? TUTTI_COMM_ERROR_FAILED : TUTTI_COMM_OK));
}

int main(void) {
  port = free_port();
  return run_ranks(3, be_rank, -1) != 0;
}
