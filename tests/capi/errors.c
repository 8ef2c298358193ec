/* What is wrong gives a status and a text, on every rank, and the communicator stays usable. errors
 * DIRECTORY; errors late: the last rank does not start a collective; the others' time-out names it.
 */
#include "expect.h"

static float x[4] = {1, 2, 3, 4}, much[8];
static tutti_comm_plan* plan;

static int allreduce(float* output, size_t count, int type, int op,
                     const tutti_comm_plan_options* options) {
  return tutti_comm_plan_allreduce(world, NULL, output, count, type, op, options, &plan);
}

static void before_init(void) {
  tutti_comm* comm = NULL;
  void* data = NULL;
  tutti_comm_init_options options = {.size = 3};
  FAILS(TUTTI_COMM_ERROR_STATE, "tutti_comm_init has not been called", tutti_comm_world(&comm));
  FAILS(TUTTI_COMM_ERROR_STATE, "tutti_comm_init has not been called", tutti_comm_finalize());
  FAILS(TUTTI_COMM_ERROR_STATE, "MPI is not running", tutti_comm_init_fortran_comm(0, NULL));
  FAILS(TUTTI_COMM_ERROR_STATE, "tutti_comm_init has not been called",
        tutti_comm_alloc(NULL, 8, &data));
  REFUSES("`size` has to be set", tutti_comm_init(NULL, NULL, &options));
  options = (tutti_comm_init_options){.size = sizeof options, .timeout = -1};
  REFUSES("time-out of -1", tutti_comm_init(NULL, NULL, &options));
  options = (tutti_comm_init_options){.size = sizeof options, .reserved = 1};
  REFUSES("`reserved`", tutti_comm_init(NULL, NULL, &options));
  options = (tutti_comm_init_options){.size = sizeof options, .progress_threads = -1};
  REFUSES("-1 progress threads", tutti_comm_init(NULL, NULL, &options));
}

static void wrong_arguments(void) {
  int number = 0;
  const char* host = NULL;
  REFUSES("comm is NULL", tutti_comm_barrier(NULL));
  REFUSES("rank is NULL", tutti_comm_rank(world, NULL));
  REFUSES("comm is NULL", tutti_comm_size(NULL, &number));
  REFUSES("rank", tutti_comm_host(world, size, &host));
  REFUSES("part is NULL", tutti_comm_split(world, 0, 0, NULL));
  REFUSES("color -1: it must be 0 or more",
          tutti_comm_split(world, rank == size - 1 ? -1 : 0, 0, &world));
  REFUSES("0 seconds: it must", tutti_comm_set_timeout(world, 0));
  REFUSES("not from tutti_comm_alloc", tutti_comm_free(x));
  REFUSES("message is NULL", tutti_comm_abort(world, 1, NULL));
  REFUSES("plan is NULL", tutti_comm_start(NULL));
  REFUSES("plan is NULL", tutti_comm_wait(NULL));
  REFUSES("plan is NULL", tutti_comm_test(NULL, &number));
}

static void wrong_plans(void) {
  const size_t too_many[] = {(size_t)-1, 1, 1, 1};
  tutti_comm_plan_options options = {.size = sizeof options, .algorithm = "star"};
  REFUSES("no algorithm is called 'star'",
          allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options));
  options.algorithm = "binomial";
  REFUSES("binomial does not do allreduce",
          allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options));
  REFUSES("9 is no enum tutti_comm_type", allreduce(x, 4, 9, TUTTI_COMM_SUM, NULL));
  REFUSES("-1 is no enum tutti_comm_op", allreduce(x, 4, TUTTI_COMM_F32, -1, NULL));
  REFUSES("bytes can be moved, but not reduced",
          allreduce(x, 4, TUTTI_COMM_BYTE, TUTTI_COMM_SUM, NULL));
  REFUSES("no output on rank", allreduce(NULL, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL));
  REFUSES("no input on rank",
          tutti_comm_plan_allgather(world, NULL, x, 1, TUTTI_COMM_F32, NULL, &plan));
  REFUSES("root", tutti_comm_plan_broadcast(world, x, 4, TUTTI_COMM_F32, size, NULL, &plan));
  REFUSES("615 elements are more than any memory",
          allreduce(x, (size_t)-1, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL));
  REFUSES("any memory",
          tutti_comm_plan_gather(world, x, x, (size_t)-1, TUTTI_COMM_F32, 0, NULL, &plan));
  REFUSES("counts", tutti_comm_plan_allgatherv(world, x, x, too_many, TUTTI_COMM_F32, NULL, &plan));
  REFUSES("counts is NULL",
          tutti_comm_plan_allgatherv(world, x, x, NULL, TUTTI_COMM_F32, NULL, &plan));
  const size_t sent[] = {1, 1, 1, 1};
  const size_t expected[] = {1, rank == 0 ? 2 : 1, 1, 1};
  if (size > 1)
    REFUSES("sends 1 elements to rank 0",
            tutti_comm_plan_all_to_allv(world, x, sent, NULL, much, expected, NULL, TUTTI_COMM_F32,
                                        NULL, &plan));
  const size_t same_place[] = {0, 0, 0, 0};
  if (size > 1)
    REFUSES("blocks from ranks 0 and 1 overlap",
            tutti_comm_plan_all_to_allv(world, x, sent, NULL, much, sent, same_place,
                                        TUTTI_COMM_F32, NULL, &plan));
  REFUSES("plan is NULL", tutti_comm_plan_barrier(world, NULL, NULL));
  EXPECT(plan == NULL);
}

/* A caller whose header is of another time. */
static void other_versions(void) {
  struct {
    tutti_comm_plan_options known;
    size_t later;
  } options = {.known = {.size = sizeof options}};
  OK(allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options.known));
  OK(tutti_comm_plan_destroy(plan));
  plan = NULL;
  options.later = 1;
  REFUSES("does not have", allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options.known));
  options.known.size = 8;
  REFUSES("`size` has to be set", allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options.known));
}

/* One rank asks for something else, or cannot do it: all are told, and can go on. */
static void ranks_that_differ(void) {
  if (size == 1) return;
  const int last = rank == size - 1;
  REFUSES(" plans '", allreduce(x, last ? 3 : 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL));
  const int status = allreduce(last ? NULL : x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL);
  EXPECT(status == TUTTI_COMM_ERROR_ARGUMENT &&
         strstr(tutti_comm_last_error(),
                last ? "no output on rank" : "cannot do what it was asked for"));
}

static void calls_out_of_order(const char* directory) {
  char path[4096];
  void* data = NULL;
  tutti_comm* part = NULL;
  FAILS(TUTTI_COMM_ERROR_STATE, "called twice", tutti_comm_init(NULL, NULL, NULL));
  FAILS(TUTTI_COMM_ERROR_STATE, "ends with tutti_comm_finalize", tutti_comm_destroy(world));
  snprintf(path, sizeof path, "%s/missing.txt", directory);
  FAILS(TUTTI_COMM_ERROR_FILE, "missing.txt", tutti_comm_set_selection_file(world, path));
  snprintf(path, sizeof path, "%s/abi.txt", directory);
  REFUSES("abi.txt:", tutti_comm_set_selection_file(world, path));

  OK(tutti_comm_split(world, 0, 0, &part));
  OK(tutti_comm_alloc(part, 100, &data));
  FAILS(TUTTI_COMM_ERROR_STATE, "1 plan(s) and allocation(s) are left", tutti_comm_destroy(part));
  FAILS(TUTTI_COMM_ERROR_STATE, "1 plan(s) and allocation(s) and 1 communicator(s) are left",
        tutti_comm_finalize());
  OK(tutti_comm_free(data));
  REFUSES("has been freed", tutti_comm_free(data));
  OK(tutti_comm_destroy(part));

  OK(allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL));
  OK(tutti_comm_start(plan));
  if (size > 1) {
    FAILS(TUTTI_COMM_ERROR_STATE, "still in flight", tutti_comm_start(plan));
    FAILS(TUTTI_COMM_ERROR_STATE, "in flight: wait", tutti_comm_plan_destroy(plan));
  }
  OK(tutti_comm_wait(plan));
  REFUSES("done is NULL", tutti_comm_test(plan, NULL));
  EXPECT(x[0] == (float)size && x[3] == 4 * (float)size);
  FAILS(TUTTI_COMM_ERROR_STATE,
        "1 plan(s) and allocation(s) and 0 communicator(s) are left, to be given back first",
        tutti_comm_finalize());
  OK(tutti_comm_plan_destroy(plan));
}

static int late(void) {
  const tutti_comm_plan_options options = {.size = sizeof options, .name = "gradient"};
  OK(tutti_comm_set_timeout(world, patience(1)));
  OK(allreduce(x, 4, TUTTI_COMM_F32, TUTTI_COMM_SUM, &options));
  if (rank == size - 1) { /* stays alive until the others end the job */
    OK(tutti_comm_set_timeout(world, kHangSeconds));
    return tutti_comm_barrier(world);
  }
  OK(tutti_comm_start(plan));
  if (tutti_comm_wait(plan) != TUTTI_COMM_ERROR_FAILED) return 1;
  char why[4096];
  snprintf(why, sizeof why, "%s", tutti_comm_last_error());
  FAILS(TUTTI_COMM_ERROR_STATE, "has failed, and is only to be destroyed", tutti_comm_start(plan));
  return tutti_comm_abort(world, 3, why);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  before_init();
  OK(tutti_comm_init(NULL, NULL, NULL));
  find_world();
  if (strcmp(argv[1], "late") == 0) return late();
  wrong_arguments();
  wrong_plans();
  other_versions();
  ranks_that_differ();
  calls_out_of_order(argv[1]);
  OK(tutti_comm_finalize());
  FAILS(TUTTI_COMM_ERROR_FAILED, "cannot be started a second time",
        tutti_comm_init(NULL, NULL, NULL));
  return 0;
}
