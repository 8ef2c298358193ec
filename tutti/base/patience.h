#pragma once
/* For tests, in C and C++: how long they wait on a machine that may be busy. A time-out that a
 * test waits out is short on an idle machine, and grows with the machine's delay: patience(). A
 * limit that only a hang reaches is kHangSeconds. tests/README.md says when to use which. */

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double kHangSeconds = 300, kLongestSeconds = 600;

static double tutti_delay;
static pthread_once_t tutti_delay_once = PTHREAD_ONCE_INIT;

static inline double tutti_seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Measures how much longer this process currently needs for its work than on an idle machine, at
 * least 1: the wall time of 5 ms of processor time or, if larger, the number of threads per
 * core, now or on average over the last minute. */
static inline void tutti_measure_delay(void) {
  const double begin = tutti_seconds_of(CLOCK_MONOTONIC),
               used = tutti_seconds_of(CLOCK_THREAD_CPUTIME_ID), work = 0.005;
  const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
  double load = 0;
  int runnable = 0;
  FILE* const file = fopen("/proc/loadavg", "r");
  if (file != NULL) {
    if (fscanf(file, "%lf %*s %*s %d", &load, &runnable) != 2) runnable = 0;
    fclose(file);
  }
  while (tutti_seconds_of(CLOCK_THREAD_CPUTIME_ID) - used < work) {}
  tutti_delay = (tutti_seconds_of(CLOCK_MONOTONIC) - begin) / work;
  if (load / cores > tutti_delay) tutti_delay = load / cores;
  if (runnable / cores > tutti_delay) tutti_delay = runnable / cores;
  if (tutti_delay < 1) tutti_delay = 1;
}

/* Converts seconds of an idle machine to seconds on this one, at most kLongestSeconds. The delay
 * is measured once per process. */
static inline double patience(double seconds) {
  pthread_once(&tutti_delay_once, tutti_measure_delay);
  return seconds * tutti_delay < kLongestSeconds ? seconds * tutti_delay : kLongestSeconds;
}

/* Sleeps for patience(seconds): longer than a time-out of patience(less). */
static inline void sleep_patiently(double seconds) {
  const double all = patience(seconds);
  struct timespec left;
  left.tv_sec = (time_t)all;
  left.tv_nsec = (long)(1e9 * (all - (double)left.tv_sec));
  while (nanosleep(&left, &left) != 0) {}
}
