/* Every function of tutti_comm.h, with the answers that they must give. collectives
 * shared|private[_threads] SELECTION-FILE */
#include <stdint.h>
#include <time.h>

#include "of_one_rank.h"

enum { kCount = 1000, kMostRanks = 8 };

/* What rank r gives as element i of the long vector: small whole numbers, so that every sum is
 * exact. */
static float value(int r, size_t i) { return (float)((r + 1) * (int)(i % 7 + 1)); }
static float sum(size_t i) {
  float s = 0;
  for (int r = 0; r < size; ++r) s += value(r, i);
  return s;
}
static void fill(float* data, size_t begin, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] = value(rank, begin + i);
}

static void check_library(void) {
  EXPECT(tutti_comm_version() == TUTTI_COMM_VERSION);
  EXPECT(strcmp(tutti_comm_status_name(TUTTI_COMM_OK), "TUTTI_COMM_OK") == 0);
  EXPECT(strcmp(tutti_comm_status_name(TUTTI_COMM_ERROR_MEMORY), "TUTTI_COMM_ERROR_MEMORY") == 0);
  EXPECT(strcmp(tutti_comm_status_name(99), "unknown status") == 0);
  EXPECT(strcmp(tutti_comm_last_error(), "") == 0);
  /* The layout that programs were compiled with. */
  EXPECT(sizeof(tutti_comm_init_options) == 40 && offsetof(tutti_comm_init_options, timeout) == 8 &&
         offsetof(tutti_comm_init_options, private_memory) == 16 &&
         offsetof(tutti_comm_init_options, reserved) == 20 &&
         offsetof(tutti_comm_init_options, progress_threads) == 24 &&
         offsetof(tutti_comm_init_options, reserved2) == 28 &&
         offsetof(tutti_comm_init_options, address) == 32);
  EXPECT(sizeof(tutti_comm_plan_options) == 48 && offsetof(tutti_comm_plan_options, name) == 8 &&
         offsetof(tutti_comm_plan_options, algorithm) == 16 &&
         offsetof(tutti_comm_plan_options, chunk) == 24 &&
         offsetof(tutti_comm_plan_options, priority) == 32 &&
         offsetof(tutti_comm_plan_options, reproducible) == 36 &&
         offsetof(tutti_comm_plan_options, rebindable) == 40);
}

static void check_communicators(void) {
  int local_rank = -1, local_size = -1, part_rank = -1, part_size = -1;
  const char* host = NULL;
  tutti_comm* part = NULL;
  OK(tutti_comm_local_rank(world, &local_rank));
  OK(tutti_comm_local_size(world, &local_size));
  EXPECT(local_rank == rank && local_size == size);
  OK(tutti_comm_host(world, size - 1, &host));
  EXPECT(host && strlen(host) > 0);
  OK(tutti_comm_barrier(world));

  OK(tutti_comm_split(world, rank % 2, -rank, &part));
  OK(tutti_comm_rank(part, &part_rank));
  OK(tutti_comm_size(part, &part_size));
  EXPECT(part_size == (size + 1 - rank % 2) / 2 && part_rank == part_size - 1 - rank / 2);
  float x = (float)rank;
  reduce_all(part, &x, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM);
  float expected = 0;
  for (int r = rank % 2; r < size; r += 2) expected += (float)r;
  EXPECT(x == expected);
  OK(tutti_comm_destroy(part));
  OK(tutti_comm_destroy(NULL));
}

/* The number 3 (rank + 1) in every type that adds, reduced by every operation. */
static void check_types(void) {
  static const uint16_t bf16[] = {0x4040, 0x40c0, 0x4110, 0x4140},
                        f16[] = {0x4200, 0x4600, 0x4880, 0x4a00};
  const int op_of[] = {TUTTI_COMM_SUM, TUTTI_COMM_MIN, TUTTI_COMM_MAX, TUTTI_COMM_MEAN};
  for (int o = 0; o < 4; ++o) {
    const int mine = 3 * (rank + 1), all = 3 * size * (size + 1) / 2;
    const int expected = o == 0 ? all : o == 1 ? 3 : o == 2 ? 3 * size : all / size;
    float f32 = (float)mine;
    double f64 = mine;
    int8_t i8 = (int8_t)mine;
    int32_t i32 = mine;
    uint16_t half[2] = {bf16[rank], f16[rank]};
    void* data[] = {&f32, &f64, &half[0], &half[1], &i8, &i32};
    for (int type = TUTTI_COMM_F32; type <= TUTTI_COMM_I32; ++type)
      reduce_all(world, data[type], 1, type, op_of[o]);
    EXPECT(f32 == (o == 3 ? (float)all / (float)size : (float)expected) &&
           f64 == (o == 3 ? (double)all / size : expected));
    EXPECT(i8 == expected && i32 == expected);
    if (o == 1) EXPECT(half[0] == bf16[0] && half[1] == f16[0]);
    if (o == 2) EXPECT(half[0] == bf16[size - 1] && half[1] == f16[size - 1]);
    /* 3, 9, 30: for 1, 2, 4 ranks */
    if (o == 0)
      EXPECT(half[0] == (size == 1   ? 0x4040
                         : size == 2 ? 0x4110
                                     : 0x41f0) &&
             half[1] == (size == 1   ? 0x4200
                         : size == 2 ? 0x4880
                                     : 0x4f80));
  }
}

static void check_whole_vectors(float* in, float* out) {
  tutti_comm_plan* plan = NULL;
  for (int root = 0; root < size; ++root) {
    if (rank == root) fill(out, 0, kCount);
    OK(tutti_comm_plan_broadcast(world, out, kCount * sizeof(float), TUTTI_COMM_BYTE, root, NULL,
                                 &plan));
    run_once(plan);
    for (size_t i = 0; i < kCount; ++i) EXPECT(out[i] == value(root, i));
    fill(in, 0, kCount);
    OK(tutti_comm_plan_reduce(world, in, rank == root ? out : NULL, kCount, TUTTI_COMM_F32,
                              TUTTI_COMM_SUM, root, NULL, &plan));
    run_once(plan);
    for (size_t i = 0; i < kCount && rank == root; ++i) EXPECT(out[i] == sum(i));
  }
  const char* const names[] = {"pairwise", "recursive_doubling", "recursive_halving",
                               "ring",     "double_tree",        "two_level",
                               "ring_2d"};
  for (size_t a = 0; a < sizeof names / sizeof *names; ++a) {
    const tutti_comm_plan_options options = {.size = sizeof options,
                                             .name = "gradient",
                                             .algorithm = names[a],
                                             .chunk = a % 2 ? 300 : 0,
                                             .priority = (int)a};
    /* Not every algorithm does every number of ranks: a refusal is an error with its reason on
     * every rank. */
    const int status = tutti_comm_plan_allreduce(world, in, out, kCount, TUTTI_COMM_F32,
                                                 TUTTI_COMM_SUM, &options, &plan);
    if (status == TUTTI_COMM_ERROR_ARGUMENT && a > 3) continue;
    OK(status);
    const char* name = NULL;
    OK(tutti_comm_plan_algorithm(plan, &name));
    EXPECT(strcmp(name, names[a]) == 0);
    for (int repeat = 0; repeat < 3; ++repeat) {
      memset(out, 0, kCount * sizeof *out);
      run(plan);
      for (size_t i = 0; i < kCount; ++i) EXPECT(out[i] == sum(i));
    }
    OK(tutti_comm_plan_destroy(plan));
  }
}

/* Rank r's part has r + 1 elements, or 5 each. */
static void check_parts(float* in, float* out, int each) {
  size_t counts[kMostRanks] = {0}, begins[kMostRanks] = {0}, all = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = each ? 5 : (size_t)r + 1;
    begins[r] = all;
    all += counts[r];
  }
  const size_t n = counts[rank], begin = begins[rank];
  const int root = size - 1, type = TUTTI_COMM_F32, op = TUTTI_COMM_SUM;
  tutti_comm_plan* plan = NULL;

  fill(in, 0, all);
  if (each)
    OK(tutti_comm_plan_reduce_scatter(world, in, out, 5, type, op, NULL, &plan));
  else
    OK(tutti_comm_plan_reduce_scatterv(world, in, out, counts, type, op, NULL, &plan));
  run_once(plan);
  for (size_t i = 0; i < n; ++i) EXPECT(out[i] == sum(begin + i));

  fill(in, begin, n);
  if (each)
    OK(tutti_comm_plan_allgather(world, in, out, 5, type, NULL, &plan));
  else
    OK(tutti_comm_plan_allgatherv(world, in, out, counts, type, NULL, &plan));
  run_once(plan);
  for (int r = 0; r < size; ++r)
    for (size_t i = 0; i < counts[r]; ++i) EXPECT(out[begins[r] + i] == value(r, begins[r] + i));

  memset(out, 0, all * sizeof *out);
  if (each)
    OK(tutti_comm_plan_gather(world, in, rank == root ? out : NULL, 5, type, root, NULL, &plan));
  else
    OK(tutti_comm_plan_gatherv(world, in, rank == root ? out : NULL, counts, type, root, NULL,
                               &plan));
  run_once(plan);
  for (int r = 0; r < size && rank == root; ++r)
    for (size_t i = 0; i < counts[r]; ++i) EXPECT(out[begins[r] + i] == value(r, begins[r] + i));

  fill(in, 0, all);
  if (each)
    OK(tutti_comm_plan_scatter(world, rank == root ? in : NULL, out, 5, type, root, NULL, &plan));
  else
    OK(tutti_comm_plan_scatterv(world, rank == root ? in : NULL, out, counts, type, root, NULL,
                                &plan));
  run_once(plan);
  for (size_t i = 0; i < n; ++i) EXPECT(out[i] == value(root, begin + i));

  /* Rank r sends counts[q] elements to q, and so receives counts[r] from each; v: to places in
   * descending order. */
  size_t receives[kMostRanks] = {0}, places[kMostRanks] = {0};
  for (int r = 0; r < size; ++r) {
    receives[r] = n;
    places[r] = each ? (size_t)r * n : (size_t)(size - 1 - r) * n;
  }
  if (each)
    OK(tutti_comm_plan_all_to_all(world, in, out, 5, type, NULL, &plan));
  else
    OK(tutti_comm_plan_all_to_allv(world, in, counts, NULL, out, receives, places, type, NULL,
                                   &plan));
  run_once(plan);
  for (int r = 0; r < size; ++r)
    for (size_t i = 0; i < n; ++i) EXPECT(out[places[r] + i] == value(r, begin + i));
}

static void check_memory(void) {
  float* shared = NULL;
  void* nothing = NULL;
  OK(tutti_comm_alloc(world, kCount * sizeof(float), (void**)&shared));
  OK(tutti_comm_alloc(world, rank == 0 ? 64 : 0, &nothing));
  EXPECT(nothing);
  for (size_t i = 0; i < kCount; ++i) EXPECT(shared[i] == 0);
  fill(shared, 0, kCount);
  reduce_all(world, shared, kCount, TUTTI_COMM_F32, TUTTI_COMM_SUM);
  for (size_t i = 0; i < kCount; ++i) EXPECT(shared[i] == sum(i));
  OK(tutti_comm_free(shared));
  OK(tutti_comm_free(nothing));
  OK(tutti_comm_free(NULL));
}

/* Two plans in flight, tested in turns; a barrier; the schedule as text; which algorithm the table
 * chooses. */
static void check_running(const char* selection_file) {
  float a = 1, b = (float)rank;
  int done = 0;
  tutti_comm_plan *first = NULL, *second = NULL, *barrier = NULL;
  OK(tutti_comm_set_selection_file(world, selection_file));
  OK(tutti_comm_plan_allreduce(world, NULL, &a, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL, &first));
  const tutti_comm_plan_options same_bits = {.size = sizeof same_bits, .reproducible = 1};
  OK(tutti_comm_plan_allreduce(world, NULL, &b, 1, TUTTI_COMM_F32, TUTTI_COMM_MAX, &same_bits,
                               &second));
  OK(tutti_comm_plan_barrier(world, NULL, &barrier));
  const char* name = NULL;
  OK(tutti_comm_plan_algorithm(first, &name));
  EXPECT(strcmp(name, "ring") == 0);
  OK(tutti_comm_test(first, &done));
  EXPECT(done == 1);
  OK(tutti_comm_start(rank % 2 ? first : second));
  OK(tutti_comm_start(rank % 2 ? second : first));
  for (int first_done = 0, second_done = 0; !first_done || !second_done;) {
    OK(tutti_comm_test(second, &second_done));
    OK(tutti_comm_test(first, &first_done));
  }
  EXPECT(a == (float)size && b == (float)(size - 1));
  run_once(barrier);

  char text[4000], head[10];
  size_t length = 0;
  OK(tutti_comm_plan_print(first, NULL, 0, &length));
  EXPECT(length > 0 && length < sizeof text);
  OK(tutti_comm_plan_print(first, text, sizeof text, NULL));
  EXPECT(strlen(text) == length && strncmp(text, "allreduce by ring", 17) == 0);
  OK(tutti_comm_plan_print(first, head, sizeof head, &length));
  EXPECT(strcmp(head, "allreduce") == 0 && length == strlen(text));
  OK(tutti_comm_plan_destroy(first));
  OK(tutti_comm_plan_destroy(second));
  OK(tutti_comm_plan_destroy(NULL));
}

/* Reads what a thread of the library may be writing, which no program should: it is the test. */
__attribute__((no_sanitize("thread"))) static float look_at(const volatile float* x) { return *x; }

/* Between start and the answer this rank makes no call of the library. */
static void check_progress(void) {
  static volatile float sum[2 * kCount];
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_plan_allreduce(world, NULL, (float*)sum, 2 * kCount, TUTTI_COMM_F32, TUTTI_COMM_SUM,
                               NULL, &plan));
  for (int i = 0; i < 2 * kCount; ++i) sum[i] = 1;
  OK(tutti_comm_start(plan));
  const time_t begin = time(NULL);
  while (look_at(&sum[2 * kCount - 1]) != (float)size) EXPECT(time(NULL) - begin < 60);
  OK(tutti_comm_wait(plan));
  OK(tutti_comm_plan_destroy(plan));
}

int main(int argc, char** argv) {
  EXPECT(argc == 3);
  check_library();
  const int threads = strstr(argv[1], "threads") != NULL;
  const tutti_comm_init_options options = {.size = sizeof options,
                                           .timeout = kHangSeconds,
                                           .private_memory = strncmp(argv[1], "private", 7) == 0,
                                           .progress_threads = threads};
  OK(tutti_comm_init(&argc, &argv, &options));
  find_world();
  EXPECT(size <= kMostRanks / 2);
  OK(tutti_comm_set_timeout(world, kHangSeconds));
  static float in[kCount], out[kCount];
  check_communicators();
  check_types();
  check_whole_vectors(in, out);
  check_parts(in, out, 0);
  check_parts(in, out, 1);
  check_memory();
  check_running(argv[2]);
  check_messages();
  check_messages_at_once();
  check_exchanges();
  check_refused_exchanges();
  if (threads) check_progress();
  OK(tutti_comm_finalize());
  if (rank == 0) printf("all as expected on %d rank(s)\n", size);
  return 0;
}
