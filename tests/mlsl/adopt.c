/* A program that starts and ends MPI itself: MLSL joins it twice, leaves it running, and cannot
 * join it when it is over. */

#include <mpi.h>
#include <stdio.h>

#include "mlsl.h"

static int wrong;

static void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

static void sum_over_all(mlsl_environment environment, size_t size, double value) {
  mlsl_distribution all;
  mlsl_comm_req request;
  expect(mlsl_environment_create_distribution(environment, size, 1, &all) == CMLSL_SUCCESS,
         "the distribution");
  expect(mlsl_distribution_all_reduce(all, &value, &value, 1, DT_DOUBLE, RT_SUM, GT_GLOBAL,
                                      &request) == CMLSL_SUCCESS,
         "the start");
  expect(mlsl_environment_wait(environment, request) == CMLSL_SUCCESS, "the wait");
  expect(value == (double)size, "the sum");
}

int main(int argc, char** argv) {
  mlsl_environment environment;
  size_t size = 0;
  int round, rank, ranks, sum = 0, one = 1;
  expect(MPI_Init(&argc, &argv) == MPI_SUCCESS, "MPI_Init");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  mlsl_environment_get_env(&environment);
  for (round = 0; round < 2; ++round) {
    /* A colour lasts until Finalize. */
    if (round == 0)
      expect(mlsl_environment_configure(environment, rank == 0 ? "color=0" : "color=1") ==
                 CMLSL_SUCCESS,
             "the colour");
    expect(mlsl_environment_init(environment, &argc, &argv) == CMLSL_SUCCESS, "Init");
    expect(mlsl_environment_init(environment, &argc, &argv) == CMLSL_FAILURE, "Init after Init");
    mlsl_environment_get_process_count(environment, &size);
    expect(size == (size_t)(round == 1 ? ranks : rank == 0 ? 1 : ranks - 1), "the world");
    sum_over_all(environment, size, 1);
    expect(mlsl_environment_finalize(environment) == CMLSL_SUCCESS, "Finalize");
    /* Between the two, and afterwards, MPI is the program's. */
    expect(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS &&
               sum == ranks,
           "MPI's own sum");
  }
  expect(MPI_Finalize() == MPI_SUCCESS, "MPI_Finalize");
  expect(mlsl_environment_init(environment, &argc, &argv) == CMLSL_FAILURE,
         "Init after MPI_Finalize");
  if (rank == 0) printf("adopt: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
