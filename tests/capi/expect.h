#pragma once
/* Checks for the C programs here: the first broken expectation prints its place, and ends the
 * whole job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_comm.h>

#include "tutti/base/patience.h"

static tutti_comm* world;
static int rank, size;

static void broken(const char* file, int line, const char* what) {
  fprintf(stderr, "rank %d/%d: %s:%d: %s; last error: %s\n", rank, size, file, line, what,
          tutti_comm_last_error());
  if (world) tutti_comm_abort(world, 1, "an expectation is broken");
  exit(1);
}

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) broken(__FILE__, __LINE__, #condition); \
  } while (0)
#define OK(call) EXPECT((call) == TUTTI_COMM_OK)
/* The call fails with this status, and its text has `part` in it. */
#define FAILS(status, part, call)                                \
  do {                                                           \
    EXPECT((call) == (status));                                  \
    if (!strstr(tutti_comm_last_error(), part))                  \
      broken(__FILE__, __LINE__, "no \"" part "\" in the text"); \
  } while (0)

/* The call refuses its arguments, and its text has `part` in it. */
#define REFUSES(part, call) FAILS(TUTTI_COMM_ERROR_ARGUMENT, part, call)

static void find_world(void) {
  OK(tutti_comm_world(&world));
  OK(tutti_comm_rank(world, &rank));
  OK(tutti_comm_size(world, &size));
}

static inline void run(tutti_comm_plan* plan) {
  OK(tutti_comm_start(plan));
  OK(tutti_comm_wait(plan));
}

static inline void run_once(tutti_comm_plan* plan) {
  run(plan);
  OK(tutti_comm_plan_destroy(plan));
}

/* Reduces x of all ranks in place. */
static inline void reduce_all(tutti_comm* comm, void* x, size_t count, int type, int op) {
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_plan_allreduce(comm, NULL, x, count, type, op, NULL, &plan));
  run_once(plan);
}
