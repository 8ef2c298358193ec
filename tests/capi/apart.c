/* A communicator of its own that fails leaves the job as it was. */
#include "expect.h"

static int set(void* context, const char* key, const void* value, size_t bytes) {
  (void)context, (void)key, (void)value, (void)bytes;
  return 0;
}

/* Nobody else comes to this store. */
static int get(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
               double seconds) {
  (void)context, (void)key, (void)value, (void)capacity, (void)bytes, (void)seconds;
  return 1;
}

int main(int argc, char** argv) {
  static float x[100000];
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_init(&argc, &argv, NULL));
  find_world();
  OK(tutti_comm_plan_allreduce(world, NULL, x, 100000, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL,
                               &plan));
  if (rank == 0) {
    const tutti_comm_store nobody = {.size = sizeof nobody, .set = set, .get = get};
    const tutti_comm_init_options options = {.size = sizeof options, .timeout = patience(0.5)};
    tutti_comm* pair = NULL;
    EXPECT(tutti_comm_create(&nobody, 0, 2, "pair", &options, &pair) == TUTTI_COMM_ERROR_FAILED);
    OK(tutti_comm_start(plan));
    if (size > 1) FAILS(TUTTI_COMM_ERROR_STATE, "is in flight", tutti_comm_plan_destroy(plan));
    OK(tutti_comm_barrier(world));
  } else {
    OK(tutti_comm_barrier(world));
    OK(tutti_comm_start(plan));
  }
  OK(tutti_comm_wait(plan));
  OK(tutti_comm_plan_destroy(plan));
  OK(tutti_comm_finalize());
  return 0;
}
