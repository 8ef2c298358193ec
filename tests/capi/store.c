/* Jobs without MPI: this program starts its ranks itself. store CASE: tcp | given | groups | killed
 * | threads | uneven | refused */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "of_one_rank.h"
#include "own_ranks.h"

enum { kCount = 70000 };

static char directory[64]; /* where the program's own store keeps a file for each key */

static void nap(void) {
  const struct timespec some = {.tv_sec = 0, .tv_nsec = 2000000};
  nanosleep(&some, NULL);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void path_of(const char* key, char* path, size_t room) {
  snprintf(path, room, "%s/%s", directory, key);
  for (char* c = path + strlen(directory) + 1; *c; ++c)
    if (*c == '/') *c = '.';
}

static int set_file(void* context, const char* key, const void* value, size_t bytes) {
  char path[760], whole[700];
  EXPECT(context == directory);
  path_of(key, whole, sizeof whole);
  snprintf(path, sizeof path, "%s.%d", whole, (int)getpid());
  FILE* file = fopen(path, "w");
  if (!file || fwrite(value, 1, bytes, file) != bytes || fclose(file) != 0) return 2;
  return rename(path, whole) == 0 ? 0 : 2;
}

static int get_file(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
                    double seconds) {
  char path[700];
  EXPECT(context == directory);
  path_of(key, path, sizeof path);
  FILE* file = fopen(path, "r");
  for (const time_t begin = time(NULL); !file && difftime(time(NULL), begin) < seconds; nap())
    file = fopen(path, "r");
  if (!file) return 1;
  *bytes = fread(value, 1, capacity, file);
  fclose(file);
  return 0;
}

static void check_sums(tutti_comm* comm) {
  static float x[kCount];
  int ranks = 0, mine = 0;
  OK(tutti_comm_size(comm, &ranks));
  OK(tutti_comm_rank(comm, &mine));
  for (int i = 0; i < kCount; ++i) x[i] = (float)(mine + 1);
  reduce_all(comm, x, kCount, TUTTI_COMM_F32, TUTTI_COMM_SUM);
  for (int i = 0; i < kCount; ++i) EXPECT(x[i] == (float)(ranks * (ranks + 1) / 2));
}

static void check_types(void) {
  int64_t big = ((int64_t)1 << 40) + rank, product = rank + 2;
  uint8_t small = (uint8_t)(200 + rank);
  int64_t all = 1;
  reduce_all(world, &big, 1, TUTTI_COMM_I64, TUTTI_COMM_MAX);
  EXPECT(big == ((int64_t)1 << 40) + size - 1);
  reduce_all(world, &product, 1, TUTTI_COMM_I64, TUTTI_COMM_PRODUCT);
  for (int r = 0; r < size; ++r) all *= r + 2;
  EXPECT(product == all);
  reduce_all(world, &small, 1, TUTTI_COMM_U8, TUTTI_COMM_MIN);
  EXPECT(small == 200);
}

static void check_rebind(void) {
  float a[3] = {1, 2, 3}, b[3] = {4, 5, 6}, sum[3];
  tutti_comm_plan* plan = NULL;
  const tutti_comm_plan_options moving = {.size = sizeof moving, .rebindable = 1};
  OK(tutti_comm_plan_allreduce(world, NULL, NULL, 3, TUTTI_COMM_F32, TUTTI_COMM_SUM, &moving,
                               &plan));
  FAILS(TUTTI_COMM_ERROR_STATE, "has no buffers yet", tutti_comm_start(plan));
  REFUSES("no output", tutti_comm_plan_rebind(plan, a, NULL));
  OK(tutti_comm_plan_rebind(plan, a, sum));
  run(plan);
  EXPECT(sum[2] == 3 * (float)size && a[2] == 3);
  OK(tutti_comm_plan_rebind(plan, NULL, b));
  run(plan);
  EXPECT(b[0] == 4 * (float)size);
  OK(tutti_comm_plan_destroy(plan));
}

static void wait_wrongly(tutti_comm_plan* plan) {
  int done = 0;
  REFUSES("plan is NULL", tutti_comm_wait_for(NULL, 1, &done));
  REFUSES("done is NULL", tutti_comm_wait_for(plan, 1, NULL));
  REFUSES("-1 seconds", tutti_comm_wait_for(plan, -1, &done));
  REFUSES("inf seconds", tutti_comm_wait_for(plan, INFINITY, &done));
}

/* Rank 0 comes first, and waits in vain for as long as it says. Then it lets rank 1 come too. */
static void check_wait_for(void) {
  float x = 1;
  char go = 0;
  int done = 0;
  tutti_comm_plan *sum = NULL, *message = NULL;
  OK(tutti_comm_plan_allreduce(world, NULL, &x, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL, &sum));
  wait_wrongly(sum);
  OK(tutti_comm_wait_for(sum, 0, &done));
  EXPECT(done == 1); /* never started */
  if (rank == 0 && size > 1) OK(tutti_comm_plan_send(world, &go, 1, 1, 9, 0, NULL, &message));
  if (rank == 1) {
    OK(tutti_comm_plan_receive(world, &go, 1, 0, 9, 0, NULL, &message));
    run(message);
  }
  OK(tutti_comm_start(sum));
  if (rank == 0 && size > 1) {
    const double begin = now();
    OK(tutti_comm_wait_for(sum, 0, &done));
    EXPECT(done == 0);
    OK(tutti_comm_wait_for(sum, 0.3, &done));
    EXPECT(done == 0 && now() - begin >= 0.3 && now() - begin < 15);
    run(message);
  }
  OK(tutti_comm_wait_for(sum, 25, &done));
  EXPECT(done == 1 && x == (float)size);
  OK(tutti_comm_plan_destroy(sum));
  OK(tutti_comm_plan_destroy(message));
}

static void check_all(void) {
  tutti_comm* half = NULL;
  find_world();
  check_sums(world);
  check_types();
  check_messages();
  check_messages_at_once();
  check_exchanges();
  check_refused_exchanges();
  check_rebind();
  check_wait_for();
  OK(tutti_comm_split(world, rank % 2, rank, &half));
  check_sums(half);
  OK(tutti_comm_destroy(half));
  OK(tutti_comm_barrier(world));
}

static const tutti_comm_store store = {
    .size = sizeof store, .context = directory, .set = set_file, .get = get_file};

static int start_given(int r, int n, const char* prefix, const tutti_comm_init_options* options) {
  return tutti_comm_init_store(&store, r, n, prefix, options);
}

/* Two threads, each with plans of a communicator of its own, and both of the whole, with messages
 * and sums in memory that need no plan. */
enum { kTurns = 30 };
struct thread_of {
  int number;
  tutti_comm* comm;
  tutti_comm_plan* whole; /* of all ranks */
  tutti_comm_memory* memory;
  float* x;
};

/* A number goes round, from rank 0 to rank 0; and each rank adds to its right neighbour's memory.
 */
static void pass_on(const struct thread_of* mine, int turn) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size, tag = mine->number;
  const size_t place = (size_t)mine->number * sizeof(double);
  int number = turn;
  double one = 1;
  if (rank == 0 && size > 1) OK(tutti_comm_send(world, &number, sizeof number, right, tag));
  if (size > 1) OK(tutti_comm_receive(world, &number, sizeof number, left, tag, NULL));
  EXPECT(number == turn + (rank + size - 1) % size);
  ++number;
  if (rank > 0) OK(tutti_comm_send(world, &number, sizeof number, right, tag));
  OK(tutti_comm_accumulate(mine->memory, &one, 1, TUTTI_COMM_F64, TUTTI_COMM_SUM, right, place));
  OK(tutti_comm_get(mine->memory, &one, sizeof one, right, place, 1));
  EXPECT(one == turn + 1);
}

static void* work(void* argument) {
  const struct thread_of* mine = argument;
  for (int i = 0; i < kTurns; ++i) {
    double sum = 1;
    OK(tutti_comm_start(mine->whole));
    reduce_all(mine->comm, &sum, 1, TUTTI_COMM_F64, TUTTI_COMM_SUM);
    EXPECT(sum == size);
    OK(tutti_comm_wait(mine->whole));
    pass_on(mine, i);
    OK(tutti_comm_barrier(mine->comm));
  }
  EXPECT(mine->x[0] > 0 && mine->x[kCount / 8 - 1] == mine->x[0]);
  return NULL;
}

static void check_threads(void) {
  pthread_t thread[2];
  struct thread_of of[2];
  static float x[2][kCount / 8];
  tutti_comm_memory* memory = NULL;
  double* sums = NULL;
  find_world();
  OK(tutti_comm_expose(world, 2 * sizeof(double), (void**)&sums, &memory));
  for (int t = 0; t < 2; ++t) {
    of[t].number = t;
    of[t].memory = memory;
    of[t].x = x[t];
    for (int i = 0; i < kCount / 8; ++i) x[t][i] = 1;
    OK(tutti_comm_split(world, 0, rank, &of[t].comm));
    OK(tutti_comm_plan_allreduce(world, NULL, x[t], kCount / 8, TUTTI_COMM_F32, TUTTI_COMM_MEAN,
                                 NULL, &of[t].whole));
  }
  for (int t = 0; t < 2; ++t) EXPECT(pthread_create(&thread[t], NULL, work, &of[t]) == 0);
  for (int t = 0; t < 2; ++t) pthread_join(thread[t], NULL);
  for (int t = 0; t < 2; ++t) {
    EXPECT(sums[t] == kTurns);
    OK(tutti_comm_plan_destroy(of[t].whole));
    OK(tutti_comm_destroy(of[t].comm));
  }
  OK(tutti_comm_memory_free(memory));
}

/* The last rank dies in an allreduce. The others end their job, and begin another one. */
static void check_killed(int r, int n, const tutti_comm_init_options* options) {
  float x = 1;
  int done = 1;
  tutti_comm_plan* plan = NULL;
  OK(start_given(r, n, "before", options));
  find_world();
  OK(tutti_comm_plan_allreduce(world, NULL, &x, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL, &plan));
  run(plan);
  if (r == n - 1) raise(SIGKILL);
  EXPECT(tutti_comm_start(plan) == TUTTI_COMM_OK);
  const double begin = now();
  FAILS(TUTTI_COMM_ERROR_FAILED, "waiting since", tutti_comm_wait_for(plan, 25, &done));
  EXPECT(done == 1 && now() - begin < 20); /* done is not written */
  FAILS(TUTTI_COMM_ERROR_FAILED, "waiting since", tutti_comm_wait(plan));
  OK(tutti_comm_plan_destroy(plan));
  OK(tutti_comm_finalize());
  OK(start_given(r, n - 1, "after", options));
  check_all();
  OK(tutti_comm_finalize());
}

/* Communicators of their own, one for all ranks and one for each pair, without a job. */
static void check_groups(int r, int n, const tutti_comm_init_options* options) {
  tutti_comm *whole = NULL, *pair = NULL, *half = NULL;
  void* memory = NULL;
  OK(tutti_comm_create(&store, r, n, "whole", options, &whole));
  for (int q = 0; q + 1 < n; ++q) {
    char prefix[20];
    if (r != q && r != q + 1) continue;
    snprintf(prefix, sizeof prefix, "pair/%d", q);
    OK(tutti_comm_create(&store, r - q, 2, prefix, options, &pair));
    check_sums(pair);
    OK(tutti_comm_alloc(pair, 100, &memory));
    FAILS(TUTTI_COMM_ERROR_STATE, "1 plan(s) and allocation(s) are left", tutti_comm_destroy(pair));
    OK(tutti_comm_free(memory));
    OK(tutti_comm_destroy(pair));
  }
  check_sums(whole);
  OK(tutti_comm_split(whole, r % 2, r, &half));
  OK(tutti_comm_barrier(whole));
  OK(tutti_comm_destroy(whole)); /* what was split from it lives on */
  check_sums(half);
  OK(tutti_comm_barrier(half));
  OK(tutti_comm_destroy(half));
  FAILS(TUTTI_COMM_ERROR_STATE, "has not been called", tutti_comm_world(&whole));
}

/* Rank 1 sends rank 0 more than that expects, which is an error there, and of this communicator. */
static void check_uneven(int r, int n, const tutti_comm_init_options* options) {
  const tutti_comm_plan_options named = {.size = sizeof named, .name = "tokens"};
  size_t sends[kMostRanksOfOwn], receives[kMostRanksOfOwn];
  char in[100] = {0}, out[100];
  tutti_comm* group = NULL;
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_create(&store, r, n, "uneven", options, &group));
  for (int q = 0; q < n; ++q) sends[q] = receives[q] = 2;
  if (r == 1) sends[0] = 3;
  OK(tutti_comm_plan_exchange(group, in, sends, NULL, out, receives, NULL, TUTTI_COMM_BYTE, &named,
                              &plan));
  OK(tutti_comm_start(plan));
  if (r == 0) {
    FAILS(TUTTI_COMM_ERROR_FAILED, "sent 3 bytes", tutti_comm_wait(plan));
    FAILS(TUTTI_COMM_ERROR_FAILED, "exchange 'tokens' number 1", tutti_comm_wait(plan));
  } else {
    OK(tutti_comm_wait(plan));
  }
  OK(tutti_comm_plan_destroy(plan));
  OK(tutti_comm_destroy(group));
}

static void check_refused(void) {
  const tutti_comm_store empty = {.size = sizeof empty};
  REFUSES("store is NULL", tutti_comm_init_store(NULL, 0, 1, "p", NULL));
  REFUSES("`set` or `get` is NULL", tutti_comm_init_store(&empty, 0, 1, "p", NULL));
  REFUSES("rank 3 of 2", start_given(3, 2, "p", NULL));
  REFUSES("prefix", start_given(0, 1, "", NULL));
  REFUSES("no address", tutti_comm_init_tcp("here", "s", 0, 1, NULL));
  REFUSES("no secret", tutti_comm_init_tcp("127.0.0.1:29500", NULL, 0, 1, NULL));
  REFUSES("192.0.2.1 is no address of its host", /* of nobody: RFC 5737 */
          tutti_comm_init_tcp("192.0.2.1:29500", "s", 0, 2, NULL));
  setenv("TUTTI_COMM_NODES", "foo", 1);
  REFUSES("not by 'foo'", start_given(0, 1, "one", NULL));
  unsetenv("TUTTI_COMM_NODES");
  const tutti_comm_init_options brief = {.size = sizeof brief, .timeout = patience(0.5)};
  FAILS(TUTTI_COMM_ERROR_FAILED, "has not come to the store", start_given(1, 2, "alone", &brief));
  FAILS(TUTTI_COMM_ERROR_STATE, "has not been called", tutti_comm_finalize());
  OK(start_given(0, 1, "one", NULL));
  check_all();
  FAILS(TUTTI_COMM_ERROR_STATE, "called twice", start_given(0, 1, "two", NULL));
  OK(tutti_comm_finalize());
}

static const char* name;
static int port;

static void be_rank(int r, int n) {
  char address[40];
  tutti_comm_init_options options = {.size = sizeof options,
                                     .timeout = kHangSeconds,
                                     .private_memory = strstr(name, "private") != NULL,
                                     .progress_threads = strstr(name, "progress") != NULL,
                                     .address = "127.0.0.1"};
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  if (strcmp(name, "refused") == 0) {
    check_refused();
  } else if (strncmp(name, "groups", 6) == 0) {
    check_groups(r, n, &options);
  } else if (strncmp(name, "killed", 6) == 0) {
    check_killed(r, n, &options);
  } else if (strncmp(name, "uneven", 6) == 0) {
    check_uneven(r, n, &options);
  } else if (strncmp(name, "given", 5) == 0) {
    OK(start_given(r, n, "job", &options));
    check_all();
    OK(tutti_comm_finalize());
  } else {
    setenv("TUTTI_STORE_SECRET", "of the environment", 1);
    options.address = NULL;
    OK(tutti_comm_init_tcp(address, r == 0 ? "of the environment" : NULL, r, n, &options));
    check_listeners();
    if (strncmp(name, "threads", 7) == 0)
      check_threads();
    else
      check_all();
    OK(tutti_comm_finalize());
  }
}

int main(int argc, char** argv) {
  EXPECT(argc == 3);
  name = argv[1];
  port = free_port();
  const int n = atoi(argv[2]), killed = strncmp(name, "killed", 6) == 0 ? n - 1 : -1;
  snprintf(directory, sizeof directory, "/tmp/tutti_store_XXXXXX");
  EXPECT(mkdtemp(directory));
  int failed = run_ranks(n, be_rank, killed);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", directory);
  if (system(command) != 0) failed = 1;
  if (!failed) printf("all as expected on %d rank(s)\n", n);
  return failed != 0;
}
