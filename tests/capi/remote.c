/* remote [private] [threads]: memory that ranks expose, over shared memory or over messages. */
#include "expect.h"

enum { kSteps = 20, kWeights = 5000 };

static void run(tutti_comm_plan* plan) {
  OK(tutti_comm_start(plan));
  OK(tutti_comm_wait(plan));
}

static void barrier(void) { OK(tutti_comm_barrier(world)); }

/* Every rank puts to all and reads it back; then all accumulate into all. */
static void check_everybody(void) {
  tutti_comm_memory* memory;
  float* mine;
  OK(tutti_comm_expose(world, (size_t)size * sizeof(float), (void**)&mine, &memory));
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
    tutti_comm_plan* add;
    OK(tutti_comm_plan_accumulate(memory, &one, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, target, 0, NULL,
                                  &add));
    run(add);
    OK(tutti_comm_plan_destroy(add));
  }
  barrier();
  size_t count;
  OK(tutti_comm_memory_accumulates(memory, &count));
  EXPECT(count == (size_t)size && mine[0] == (float)(rank + size));
  barrier();
  OK(tutti_comm_memory_free(memory));
}

/* Rank 0 serves weights; the others pull, and push 1. */
static void check_server(void) {
  tutti_comm_memory* memory;
  float* weights;
  float mine[kWeights];
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
    run(take);
    OK(tutti_comm_plan_destroy(take));
    sum += one;
  }
  tutti_comm_plan* all;
  OK(tutti_comm_plan_allreduce(world, NULL, &sum, 1, TUTTI_COMM_F64, TUTTI_COMM_SUM, NULL, &all));
  run(all);
  OK(tutti_comm_plan_destroy(all));
  const double n = (double)size * kSteps;
  EXPECT(sum == n * (n - 1) / 2);
  OK(tutti_comm_memory_free(memory));
}

static void check_errors(void) {
  tutti_comm_memory* memory;
  tutti_comm_plan* plan;
  float x[4] = {0};
  OK(tutti_comm_expose(world, 8, NULL, &memory));
  FAILS(TUTTI_COMM_ERROR_ARGUMENT, "are not in the 8 bytes",
        tutti_comm_plan_put(memory, x, sizeof x, 0, 0, NULL, &plan));
  FAILS(TUTTI_COMM_ERROR_ARGUMENT, "there is no rank 77",
        tutti_comm_plan_get(memory, x, 4, 77, 0, 0, NULL, &plan));
  FAILS(
      TUTTI_COMM_ERROR_ARGUMENT, "no mean",
      tutti_comm_plan_accumulate(memory, x, 1, TUTTI_COMM_F32, TUTTI_COMM_MEAN, 0, 0, NULL, &plan));
  FAILS(TUTTI_COMM_ERROR_ARGUMENT, "data is NULL",
        tutti_comm_plan_put(memory, NULL, 4, 0, 0, NULL, &plan));
  FAILS(TUTTI_COMM_ERROR_ARGUMENT, "memory is NULL",
        tutti_comm_plan_put(NULL, x, 4, 0, 0, NULL, &plan));
  const int nobody = size;
  FAILS(TUTTI_COMM_ERROR_ARGUMENT, "there is no rank",
        tutti_comm_memory_wait(memory, 1, &nobody, 1));
  OK(tutti_comm_memory_free(NULL));
  barrier();
  OK(tutti_comm_memory_free(memory));
}

int main(int argc, char** argv) {
  tutti_comm_init_options options = {.size = sizeof options, .timeout = 30};
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "private")) options.private_memory = 1;
    if (!strcmp(argv[i], "threads")) options.progress_threads = 1;
  }
  OK(tutti_comm_init(NULL, NULL, &options));
  find_world();
  check_everybody();
  if (size > 1) check_server();
  check_tickets();
  check_errors();
  OK(tutti_comm_finalize());
  return 0;
}
