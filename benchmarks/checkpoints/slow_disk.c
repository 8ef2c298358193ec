// Delays writes to regular files, as a disk of SLOW_DISK_MIB MiB/s would.
//   gcc -O2 -shared -fPIC -o slow_disk.so slow_disk.c -ldl;   LD_PRELOAD=./slow_disk.so SLOW_DISK_MIB=200 PROGRAM
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double free_at;  // when the disk has written what it was given so far

ssize_t write(int fd, const void* data, size_t bytes) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  struct stat status;
  const char* rate = getenv("SLOW_DISK_MIB");
  const ssize_t written = real(fd, data, bytes);
  if (!rate || written < (1 << 16) || fstat(fd, &status) || !S_ISREG(status.st_mode))
    return written;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const double now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
  pthread_mutex_lock(&lock);
  free_at = (free_at > now ? free_at : now) + (double)written / (atof(rate) * (1 << 20));
  const double left = free_at - now;
  pthread_mutex_unlock(&lock);
  t.tv_sec = (time_t)left;
  t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
  nanosleep(&t, NULL);
  return written;
}
