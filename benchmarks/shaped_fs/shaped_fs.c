// A read-only view of a folder through a link of a given rate, as a file system that many nodes
// share.
//   gcc -O2 -o shaped_fs shaped_fs.c $(pkg-config fuse3 --cflags --libs)
//   SHAPED_FROM=/data SHAPED_MIB=20 SHAPED_OPEN_MS=2 SHAPED_COUNT=count.txt ./shaped_fs -f MOUNTPOINT
// Nothing is kept by the system's cache (direct_io), so every byte that a program reads crosses the
// link. Once a second, SHAPED_COUNT gets a line: bytes and opens so far.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char* from;
static double rate, open_seconds;
static double free_at;  // when the link has sent what was asked for so far
static long long bytes, opens;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wait_until(double when) {
  const double left = when - now();
  if (left <= 0) return;
  struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  nanosleep(&t, NULL);
}

static void full(char* out, const char* path) { snprintf(out, 4096, "%s%s", from, path); }

static int do_getattr(const char* path, struct stat* st, struct fuse_file_info* fi) {
  (void)fi;
  char p[4096];
  full(p, path);
  return lstat(p, st) ? -errno : 0;
}

static int do_readdir(const char* path, void* buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info* fi, enum fuse_readdir_flags flags) {
  (void)off, (void)fi, (void)flags;
  char p[4096];
  full(p, path);
  DIR* dir = opendir(p);
  if (!dir) return -errno;
  for (struct dirent* e; (e = readdir(dir));) fill(buf, e->d_name, NULL, 0, 0);
  closedir(dir);
  return 0;
}

static int do_open(const char* path, struct fuse_file_info* fi) {
  char p[4096];
  full(p, path);
  const int fd = open(p, O_RDONLY);
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  fi->direct_io = 1;
  pthread_mutex_lock(&lock);
  ++opens;
  pthread_mutex_unlock(&lock);
  wait_until(now() + open_seconds);
  return 0;
}

static int do_read(const char* path, char* buf, size_t size, off_t at, struct fuse_file_info* fi) {
  (void)path;
  const ssize_t got = pread((int)fi->fh, buf, size, at);
  if (got < 0) return -errno;
  pthread_mutex_lock(&lock);
  bytes += got;
  const double t = now();
  free_at = (free_at > t ? free_at : t) + (double)got / rate;
  const double when = free_at;
  pthread_mutex_unlock(&lock);
  wait_until(when);
  return (int)got;
}

static int do_release(const char* path, struct fuse_file_info* fi) {
  (void)path;
  return close((int)fi->fh);
}

static void* count(void* file) {
  for (;; sleep(1)) {
    FILE* f = fopen(file, "w");
    if (!f) continue;
    pthread_mutex_lock(&lock);
    fprintf(f, "%lld bytes, %lld opens\n", bytes, opens);
    pthread_mutex_unlock(&lock);
    fclose(f);
  }
  return NULL;
}

static void* do_init(struct fuse_conn_info* conn, struct fuse_config* cfg) {
  (void)conn, (void)cfg;
  pthread_t thread;
  if (getenv("SHAPED_COUNT")) pthread_create(&thread, NULL, count, getenv("SHAPED_COUNT"));
  return NULL;
}

static const struct fuse_operations kOps = {.getattr = do_getattr,
                                            .readdir = do_readdir,
                                            .open = do_open,
                                            .read = do_read,
                                            .release = do_release,
                                            .init = do_init};

int main(int argc, char** argv) {
  from = getenv("SHAPED_FROM");
  rate = getenv("SHAPED_MIB") ? atof(getenv("SHAPED_MIB")) * 1048576 : 1e12;
  open_seconds = getenv("SHAPED_OPEN_MS") ? atof(getenv("SHAPED_OPEN_MS")) * 1e-3 : 0;
  if (!from) return fprintf(stderr, "SHAPED_FROM: the folder to show\n"), 2;
  return fuse_main(argc, argv, &kOps, NULL);
}
