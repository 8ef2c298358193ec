/* What a program can do after a failure in a job that MPI has started. recover CASE FOLDER
 * [private]:
 *
 * stopped, killed  One rank stops, or is killed. The others get a status, write a file each, and go
 *                  on in a job among themselves, over TCP, in the same processes.
 * late             One rank comes when the others have been told that it did not. All get a status,
 *                  and start anew over MPI.
 *
 * A rank that has done it all leaves a file done.RANK: a launcher may take offence at how such a
 * job ends. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "own_ranks.h"

enum { kCount = 70000, kVictim = 1, kSeconds = 2 };

static float x[kCount];

static tutti_comm_plan* plan_sum(void) {
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_plan_allreduce(world, NULL, x, kCount, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL,
                               &plan));
  return plan;
}

static void sum(tutti_comm_plan* plan) {
  for (int i = 0; i < kCount; ++i) x[i] = (float)(rank + 1);
  run(plan);
  for (int i = 0; i < kCount; ++i) EXPECT(x[i] == (float)(size * (size + 1) / 2));
}

static void path_of(char path[1024], const char* folder, const char* name, int of_rank) {
  snprintf(path, 1024, "%s/%s.%d", folder, name, of_rank);
}

static void write_file(const char* folder, const char* name) {
  char path[1024];
  path_of(path, folder, name, rank);
  FILE* file = fopen(path, "w");
  EXPECT(file && fputs("saved\n", file) >= 0 && fclose(file) == 0);
}

static void wait_for_file(const char* path) {
  const struct timespec moment = {.tv_nsec = 20000000};
  while (access(path, F_OK) != 0) nanosleep(&moment, NULL);
}

/* Waits until all other ranks have written theirs. */
static void wait_for_files(const char* folder, const char* name) {
  char path[1024];
  for (int r = 0; r < size; ++r) {
    path_of(path, folder, name, r);
    if (r != rank) wait_for_file(path);
  }
}

/* Returns a port that is free now, the same on all ranks that call it: rank 0 leaves it in a file.
 * One that was found when the job began would be another program's by now. */
static int shared_port(const char* folder) {
  char part[1024], whole[1024];
  path_of(part, folder, "part_of_port", 0);
  path_of(whole, folder, "port", 0);
  int port = 0;
  if (rank == 0) {
    port = free_port();
    FILE* file = fopen(part, "w");
    EXPECT(file && fprintf(file, "%d\n", port) > 0 && fclose(file) == 0);
    EXPECT(rename(part, whole) == 0);
    return port;
  }
  wait_for_file(whole);
  FILE* file = fopen(whole, "r");
  EXPECT(file && fscanf(file, "%d", &port) == 1 && fclose(file) == 0);
  return port;
}

/* Returns on the ranks that are told that one of them does not come, with nothing left in use. */
static void fail_without_victim(const char* how, const char* folder, int private_memory) {
  tutti_comm_plan* const plan = plan_sum();
  tutti_comm* part = NULL;
  OK(tutti_comm_split(world, rank % 2, 0, &part));
  sum(plan);
  if (rank == kVictim && strcmp(how, "late") == 0) {
    wait_for_files(folder, "saved");
  } else if (rank == kVictim) {
    raise(strcmp(how, "stopped") == 0 ? SIGSTOP : SIGKILL);
    for (;;) pause(); /* a launcher that ends the job lets a stopped rank go on first */
  }
  int status = TUTTI_COMM_OK;
  for (int i = 0; i < 3 && status == TUTTI_COMM_OK; ++i) {
    OK(tutti_comm_start(plan));
    status = tutti_comm_wait(plan);
  }
  EXPECT(status == TUTTI_COMM_ERROR_FAILED);
  fprintf(stderr, "rank %d of %d, memory %d: %s\n", rank, size, private_memory,
          tutti_comm_last_error());
  OK(tutti_comm_plan_destroy(plan));
  OK(tutti_comm_destroy(part));
}

int main(int argc, char** argv) {
  EXPECT(argc >= 3);
  const char* const folder = argv[2];
  tutti_comm_init_options options = {
      .size = sizeof options, .timeout = patience(kSeconds), .private_memory = argc > 3};
  OK(tutti_comm_init(&argc, &argv, &options));
  find_world();
  const int whole = size, first = rank;
  fail_without_victim(argv[1], folder, argc > 3);
  write_file(folder, "saved");
  OK(tutti_comm_finalize());
  world = NULL;

  options.timeout = kHangSeconds;
  if (strcmp(argv[1], "late") == 0) {
    OK(tutti_comm_init(NULL, NULL, &options));
  } else {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", shared_port(folder));
    OK(tutti_comm_init_tcp(address, "secret", first < kVictim ? first : first - 1, whole - 1,
                           &options));
  }
  find_world();
  tutti_comm_plan* const plan = plan_sum();
  sum(plan);
  sum(plan);
  OK(tutti_comm_plan_destroy(plan));
  write_file(folder, "done");
  OK(tutti_comm_finalize());
  return 0;
}
