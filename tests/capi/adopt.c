/* A program that has started MPI itself: the library uses it, leaves it running, and takes a group
 * of the program's own. */
#include <mpi.h>

#include "expect.h"

static float sum_of_ones(void) {
  float x = 1;
  tutti_comm_plan* plan = NULL;
  OK(tutti_comm_plan_allreduce(world, NULL, &x, 1, TUTTI_COMM_F32, TUTTI_COMM_SUM, NULL, &plan));
  run_once(plan);
  return x;
}

int main(int argc, char** argv) {
  int mpi_rank = 0, mpi_size = 0, over = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);

  OK(tutti_comm_init(&argc, &argv, NULL));
  find_world();
  EXPECT(rank == mpi_rank && size == mpi_size && sum_of_ones() == (float)mpi_size);
  OK(tutti_comm_finalize());
  MPI_Finalized(&over);
  EXPECT(!over);

  /* The even ranks, the last first; the odd ones are groups of their own beside them. */
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % 2, -mpi_rank, &half);
  const tutti_comm_init_options options = {.size = sizeof options, .timeout = kHangSeconds};
  REFUSES("no Fortran handle", tutti_comm_init_fortran_comm(MPI_Comm_c2f(MPI_COMM_NULL), &options));
  OK(tutti_comm_init_fortran_comm(MPI_Comm_c2f(half), &options));
  find_world();
  const int half_size = (mpi_size + 1 - mpi_rank % 2) / 2;
  EXPECT(size == half_size && rank == half_size - 1 - mpi_rank / 2 &&
         sum_of_ones() == (float)half_size);
  OK(tutti_comm_finalize());
  MPI_Comm_free(&half);

  OK(tutti_comm_init(NULL, NULL, NULL));
  find_world();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  FAILS(TUTTI_COMM_ERROR_STATE, "MPI was finalised before", tutti_comm_finalize());
  return 0;
}
