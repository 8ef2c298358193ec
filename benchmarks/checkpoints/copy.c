// Prints the seconds that all threads need to copy BYTES into memory that was touched before: the
// median of 7.
//   gcc -O2 -fopenmp -o copy copy.c;   ./copy BYTES
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int less(const void* a, const void* b) {
  return *(const double*)a < *(const double*)b ? -1 : 1;
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, part = 2 << 20;
  char *from = aligned_alloc(part, (bytes + part - 1) / part * part),
       *to = aligned_alloc(part, (bytes + part - 1) / part * part);
  if (!bytes || !from || !to) return 2;
  memset(from, 1, bytes);
  memset(to, 2, bytes);
  double seconds[7];
  for (int run = 0; run < 7; ++run) {
    const double began = omp_get_wtime();
#pragma omp parallel for schedule(dynamic)
    for (size_t at = 0; at < bytes; at += part)
      memcpy(to + at, from + at, bytes - at < part ? bytes - at : part);
    seconds[run] = omp_get_wtime() - began;
  }
  qsort(seconds, 7, sizeof *seconds, less);
  printf("%.4f\n", seconds[3]);
  return to[bytes / 2] != 1;
}
