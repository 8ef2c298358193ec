/* The mean over all ranks of an array, again and again.
 * cc mean.c $(pkg-config --cflags --libs tutti-comm) && mpirun -n 4 ./a.out */
#include <stdio.h>
#include <tutti_comm.h>

#define DO(call) \
  if (call) return fprintf(stderr, "%s\n", tutti_comm_last_error()), 1

int main(int argc, char** argv) {
  enum { kCount = 1000 };
  tutti_comm* world;
  tutti_comm_plan* mean;
  float* x;
  int rank;
  DO(tutti_comm_init(&argc, &argv, NULL));
  DO(tutti_comm_world(&world));
  DO(tutti_comm_rank(world, &rank));
  DO(tutti_comm_alloc(world, kCount * sizeof *x,
                      (void**)&x)); /* any memory does; this one is read in place */
  DO(tutti_comm_plan_allreduce(world, NULL, x, kCount, TUTTI_COMM_F32, TUTTI_COMM_MEAN, NULL,
                               &mean));
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < kCount; ++i) x[i] = (float)(rank + step);
    DO(tutti_comm_start(mean)); /* then compute what does not need x */
    DO(tutti_comm_wait(mean));
  }
  if (rank == 0) printf("the mean of the ranks and 9 is %g\n", x[0]);
  DO(tutti_comm_plan_destroy(mean));
  DO(tutti_comm_free(x));
  DO(tutti_comm_finalize());
}
