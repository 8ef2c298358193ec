/* Loaded beside a program (LD_PRELOAD): what each rank sends through MPI, and how long MPI_Init
 * takes and what follows it. A line for each rank at the end, appended to the file COUNT_MPI_FILE:
 *   rank, messages sent, bytes sent, seconds of MPI_Init, seconds from there to MPI_Finalize
 * Persistent sends are not counted: control messages are none. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long messages, bytes;
static double init_seconds, begun;

static void count(int n, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  ++messages;
  bytes += (long)n * size;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const double before = PMPI_Wtime();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  begun = PMPI_Wtime();
  init_seconds = begun - before;
  return code;
}

int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(n, type);
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Issend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  count(n, type);
  return PMPI_Issend(data, n, type, to, tag, comm, request);
}

int MPI_Finalize(void) {
  const double end = PMPI_Wtime();
  const char* name = getenv("COUNT_MPI_FILE");
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  FILE* file = name ? fopen(name, "a") : NULL;
  if (file) {
    fprintf(file, "%d %ld %ld %.6f %.6f\n", rank, messages, bytes, init_seconds, end - begun);
    fclose(file);
  }
  return PMPI_Finalize();
}
