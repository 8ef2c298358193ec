/* remote [private] [threads]: memory that ranks expose, over shared memory or over messages. */
#include <stdint.h>

#include "expect.h"

enum { kSteps = 20, kWeights = 100000 };

static void barrier(void) { OK(tutti_comm_barrier(world)); }

/* Every rank puts to all and reads it back; then all accumulate into all. */
static void check_everybody(void) {
  tutti_comm_memory* memory;
  float* mine;
  const size_t last = (size_t)size * sizeof(float); /* has the largest number of all */
  OK(tutti_comm_expose(world, last + sizeof(int32_t), (void**)&mine, &memory));
  for (int target = 0; target < size; ++target) {
    float out = (float)(10 * rank + target), in = -1;
    tutti_comm_plan *put, *get;
    OK(tutti_comm_plan_put(memory, &out, sizeof out, target, (size_t)rank * sizeof out, NULL,
                           &put));
    OK(tutti_comm_plan_get(memory, &in, sizeof in, target, (size_t)rank * sizeof in, 0, NULL,
                           &get));
    run(put);
    run(get);
    EXPECT(in == out);
    OK(tutti_comm_plan_destroy(put));
    OK(tutti_comm_plan_destroy(get));
  }
  barrier();
  for (int origin = 0; origin < size; ++origin) EXPECT(mine[origin] == (float)(10 * origin + rank));
  barrier();
  for (int target = 0; target < size; ++target) {
    const float one = 1;
    const int32_t number = rank + 1;
    tutti_comm_plan* add;
    OK(tutti_comm_plan_accumulate(memory, &one, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, target, 0, NULL,
                                  &add));
    run_once(add);
    OK(tutti_comm_accumulate(memory, &number, 1, TUTTI_COMM_I32, TUTTI_COMM_MAX, target, last));
  }
  barrier();
  size_t count;
  int32_t most = 0;
  OK(tutti_comm_memory_accumulates(memory, &count));
  OK(tutti_comm_get(memory, &most, sizeof most, rank, last, 0));
  EXPECT(count == 2 * (size_t)size && mine[0] == (float)(rank + size) && most == size);
  barrier();
  OK(tutti_comm_memory_free(memory));
}

/* The same without plans; what one gets, once all have fetched, are the others' sums. */
static void check_at_once(void) {
  enum { kLong = 150000 }; /* several pieces */
  static double many[kLong], back[kLong];
  tutti_comm_memory* memory;
  double* mine;
  OK(tutti_comm_expose(world, (1 + (size_t)size) * sizeof many, (void**)&mine, &memory));
  for (int target = 0; target < size; ++target) {
    const size_t place = (1 + (size_t)rank) * sizeof many;
    for (int i = 0; i < kLong; ++i) many[i] = 10 * rank + target + i;
    OK(tutti_comm_put(memory, many, sizeof many, target, place));
    OK(tutti_comm_put(memory, NULL, 0, target, place));
    OK(tutti_comm_get(memory, back, sizeof back, target, place, 0));
    EXPECT(!memcmp(back, many, sizeof many));
    for (int i = 0; i < kLong; ++i) many[i] = i % 10 + 1;
    OK(tutti_comm_accumulate(memory, many, kLong, TUTTI_COMM_F64, TUTTI_COMM_SUM, target, 0));
    OK(tutti_comm_fetch(memory, many, kLong, TUTTI_COMM_F64, TUTTI_COMM_SUM, target, 0));
    /* At least this rank's own are there, at most everybody's but the last one. */
    for (int i = 0; i < kLong; ++i)
      EXPECT(many[i] >= i % 10 + 1 && many[i] <= (2 * size - 1) * (i % 10 + 1));
  }
  barrier();
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < kLong; ++i) EXPECT(mine[(1 + p) * kLong + i] == 10 * p + rank + i);
  OK(tutti_comm_get(memory, back, sizeof back, size - 1, 0, 1));
  for (int i = 0; i < kLong; ++i) EXPECT(back[i] == 2 * size * (i % 10 + 1));
  size_t count;
  OK(tutti_comm_memory_accumulates(memory, &count));
  EXPECT(count == 2 * (size_t)size);
  barrier();
  OK(tutti_comm_memory_free(memory));
}

/* Rank 0 serves weights; the others pull, and push 1. */
static void check_server(void) {
  tutti_comm_memory* memory;
  float* weights;
  static float mine[kWeights];
  const size_t bytes = sizeof mine;
  OK(tutti_comm_expose(world, rank == 0 ? bytes : 0, (void**)&weights, &memory));
  if (rank == 0) {
    int workers[64];
    for (int p = 1; p < size; ++p) workers[p - 1] = p;
    OK(tutti_comm_memory_wait(memory, (size_t)((size - 1) * kSteps), workers, (size_t)(size - 1)));
    OK(tutti_comm_memory_hold(memory));
    FAILS(TUTTI_COMM_ERROR_STATE, "held already", tutti_comm_memory_hold(memory));
    for (int i = 0; i < kWeights; ++i) EXPECT(weights[i] == (float)((size - 1) * kSteps));
    OK(tutti_comm_memory_release(memory));
    FAILS(TUTTI_COMM_ERROR_STATE, "not held", tutti_comm_memory_release(memory));
  } else {
    static float ones[kWeights];
    const tutti_comm_plan_options moving = {.size = sizeof moving, .rebindable = 1};
    tutti_comm_plan *pull, *push;
    OK(tutti_comm_plan_get(memory, mine, bytes, 0, 0, 1, NULL, &pull));
    OK(tutti_comm_plan_accumulate(memory, NULL, kWeights, TUTTI_COMM_F32, TUTTI_COMM_SUM, 0, 0,
                                  &moving, &push));
    FAILS(TUTTI_COMM_ERROR_STATE, "no buffers yet", tutti_comm_start(push));
    OK(tutti_comm_plan_rebind(push, ones, NULL));
    for (int i = 0; i < kWeights; ++i) ones[i] = 1;
    for (int step = 0; step < kSteps; ++step) {
      run(pull);
      for (int i = 1; i < kWeights; ++i) EXPECT(mine[i] == mine[0]);
      EXPECT(mine[0] >= (float)step);
      run(push);
    }
    FAILS(TUTTI_COMM_ERROR_STATE, "2 plan(s) are left", tutti_comm_memory_free(memory));
    OK(tutti_comm_plan_destroy(pull));
    OK(tutti_comm_plan_destroy(push));
  }
  barrier();
  OK(tutti_comm_memory_free(memory));
}

/* A counter that gives each number once: their sum says so. */
static void check_tickets(void) {
  tutti_comm_memory* memory;
  OK(tutti_comm_expose(world, rank == size - 1 ? sizeof(double) : 0, NULL, &memory));
  double sum = 0;
  for (int k = 0; k < kSteps; ++k) {
    double one = 1;
    tutti_comm_plan* take;
    OK(tutti_comm_plan_fetch(memory, &one, 1, TUTTI_COMM_F64, TUTTI_COMM_SUM, size - 1, 0, NULL,
                             &take));
    run_once(take);
    sum += one;
  }
  reduce_all(world, &sum, 1, TUTTI_COMM_F64, TUTTI_COMM_SUM);
  const double n = (double)size * kSteps;
  EXPECT(sum == n * (n - 1) / 2);
  OK(tutti_comm_memory_free(memory));
}

static void check_errors(void) {
  tutti_comm_memory* memory;
  tutti_comm_plan* plan;
  float x[4] = {0};
  const tutti_comm_plan_options moving = {.size = sizeof moving, .rebindable = 1};
  OK(tutti_comm_expose(world, 8, NULL, &memory));
  REFUSES("are not in the 8 bytes", tutti_comm_plan_put(memory, x, sizeof x, 0, 0, NULL, &plan));
  REFUSES("there is no rank 77", tutti_comm_plan_get(memory, x, 4, 77, 0, 0, NULL, &plan));
  REFUSES("no mean", tutti_comm_plan_accumulate(memory, x, 1, TUTTI_COMM_F32, TUTTI_COMM_MEAN, 0, 0,
                                                NULL, &plan));
  REFUSES("data is NULL", tutti_comm_plan_put(memory, NULL, 4, 0, 0, NULL, &plan));
  REFUSES("memory is NULL", tutti_comm_plan_put(NULL, x, 4, 0, 0, NULL, &plan));
  REFUSES("are not in the 8 bytes", tutti_comm_put(memory, x, sizeof x, 0, 0));
  REFUSES("there is no rank", tutti_comm_get(memory, x, 4, size, 0, 0));
  REFUSES("no mean", tutti_comm_accumulate(memory, x, 1, TUTTI_COMM_F32, TUTTI_COMM_MEAN, 0, 0));
  REFUSES("data is NULL", tutti_comm_fetch(memory, NULL, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, 0, 0));
  REFUSES("memory is NULL", tutti_comm_put(NULL, x, 4, 0, 0));
  OK(tutti_comm_plan_put(memory, x, 4, 0, 4, &moving, &plan));
  REFUSES("input or output is NULL", tutti_comm_plan_rebind(plan, NULL, NULL));
  OK(tutti_comm_plan_destroy(plan));
  OK(tutti_comm_plan_accumulate(memory, x, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, 0, 0, &moving,
                                &plan));
  REFUSES("are not aligned", tutti_comm_plan_rebind(plan, (char*)x + 1, NULL));
  OK(tutti_comm_plan_destroy(plan));
  const int nobody = size;
  REFUSES("there is no rank", tutti_comm_memory_wait(memory, 1, &nobody, 1));
  OK(tutti_comm_memory_free(NULL));
  barrier();
  OK(tutti_comm_memory_free(memory));
}

int main(int argc, char** argv) {
  tutti_comm_init_options options = {.size = sizeof options, .timeout = kHangSeconds};
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "private")) options.private_memory = 1;
    if (!strcmp(argv[i], "threads")) options.progress_threads = 1;
  }
  OK(tutti_comm_init(NULL, NULL, &options));
  find_world();
  check_everybody();
  check_at_once();
  if (size > 1) check_server();
  check_tickets();
  check_errors();
  OK(tutti_comm_finalize());
  return 0;
}
