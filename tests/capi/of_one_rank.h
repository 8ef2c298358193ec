#pragma once
/* Tests what a rank does alone, over MPI and over a store: messages, planned and direct, and
 * exchanges of blocks. Needs find_world(). */
#include <stdint.h>

#include "expect.h"

static void check_messages(void) {
  if (size == 1) return;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  char out[40], in[100], other[100];
  size_t bytes = 0;
  tutti_comm_plan *send = NULL, *receive = NULL;
  memset(out, 'a' + rank, sizeof out);
  const tutti_comm_plan_options moving = {.size = sizeof moving, .name = "ring", .rebindable = 1};
  OK(tutti_comm_plan_send(world, out, sizeof out, next, 7, 0, NULL, &send));
  OK(tutti_comm_plan_receive(world, NULL, sizeof in, before, 7, 1, &moving, &receive));
  FAILS(TUTTI_COMM_ERROR_STATE, "has no buffers yet", tutti_comm_start(receive));
  FAILS(TUTTI_COMM_ERROR_STATE, "has not been started", tutti_comm_received(receive, &bytes));
  REFUSES("receives no message", tutti_comm_received(send, &bytes));
  FAILS(TUTTI_COMM_ERROR_STATE, "`rebindable`", tutti_comm_plan_rebind(send, out, NULL));
  REFUSES("output is NULL", tutti_comm_plan_rebind(receive, in, NULL));
  for (int i = 0; i < 2; ++i) {
    char* const room = i == 0 ? in : other;
    OK(tutti_comm_plan_rebind(receive, NULL, room));
    OK(tutti_comm_start(receive));
    run(send);
    OK(tutti_comm_wait(receive));
    OK(tutti_comm_received(receive, &bytes));
    EXPECT(bytes == sizeof out && room[0] == 'a' + before && room[39] == 'a' + before);
  }
  const char* name = NULL;
  tutti_comm_plan* none = NULL;
  REFUSES("no algorithm", tutti_comm_plan_algorithm(send, &name));
  OK(tutti_comm_plan_destroy(send));
  OK(tutti_comm_plan_destroy(receive));
  REFUSES("cannot send to itself", tutti_comm_plan_send(world, out, 1, rank, 7, 0, NULL, &none));
  REFUSES("a message with tag -1: the tag must be",
          tutti_comm_plan_send(world, out, 1, next, -1, 0, NULL, &none));
  REFUSES("data is NULL", tutti_comm_plan_send(world, NULL, 1, next, 1, 0, NULL, &none));
  EXPECT(none == NULL);
}

/* Passes messages round the ring; the ends match whether they are planned or not. */
static void check_messages_at_once(void) {
  if (size == 1) return;
  static char long_in[100000], long_out[100000];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  char out[40], in[100];
  size_t bytes = 0;
  tutti_comm_plan* receive = NULL;
  memset(out, 'a' + rank, sizeof out);
  if (rank == 0) OK(tutti_comm_send(world, out, sizeof out, next, 7));
  OK(tutti_comm_receive(world, in, sizeof in, before, 7, &bytes));
  EXPECT(bytes == sizeof out && in[0] == 'a' + before && in[39] == 'a' + before);
  if (rank > 0) OK(tutti_comm_send(world, out, sizeof out, next, 7));

  OK(tutti_comm_plan_receive(world, in, sizeof in, before, 8, 0, NULL, &receive));
  OK(tutti_comm_start(receive));
  OK(tutti_comm_send(world, NULL, 0, next, 8)); /* an empty one */
  OK(tutti_comm_wait(receive));
  OK(tutti_comm_received(receive, &bytes));
  EXPECT(bytes == 0);
  OK(tutti_comm_plan_destroy(receive));

  memset(long_out, 'A' + rank, sizeof long_out);
  OK(tutti_comm_plan_receive(world, long_in, sizeof long_in, before, 9, 0, NULL, &receive));
  OK(tutti_comm_start(receive));
  OK(tutti_comm_send(world, long_out, sizeof long_out, next, 9));
  OK(tutti_comm_wait(receive));
  EXPECT(long_in[0] == 'A' + before && long_in[sizeof long_in - 1] == 'A' + before);
  OK(tutti_comm_plan_destroy(receive));
  if (rank == 0) OK(tutti_comm_send(world, out, 1, 1, 10));
  if (rank == 1) OK(tutti_comm_receive(world, in, 1, 0, 10, NULL));

  bytes = 77;
  REFUSES("cannot send to itself", tutti_comm_send(world, out, 1, rank, 7));
  REFUSES("no peer", tutti_comm_receive(world, in, 1, size, 7, &bytes));
  REFUSES("tag must be", tutti_comm_send(world, out, 1, next, 16001));
  REFUSES("data is NULL", tutti_comm_send(world, NULL, 1, next, 7));
  REFUSES("data is NULL", tutti_comm_receive(world, NULL, 1, next, 7, &bytes));
  REFUSES("comm is NULL", tutti_comm_send(NULL, out, 1, next, 7));
  REFUSES("more than", tutti_comm_send(world, out, (size_t)-1, next, 7));
  EXPECT(bytes == 77);
}

enum { kMostBlocks = 8, kRoom = 200000 };

/* An exchange of this rank: its counts, where the blocks are, and the elements. */
struct exchange {
  size_t sends[kMostBlocks], send_begins[kMostBlocks];
  size_t receives[kMostBlocks], receive_begins[kMostBlocks];
  int32_t in[kRoom], out[kRoom];
  tutti_comm_plan* plan;
};

/* Returns the elements from p to q in a round: none if it is 0, and sometimes more than fit in
 * one piece. */
static size_t block_of(int p, int q, int round) {
  const size_t n = (size_t)((3 * p + 5 * q + 7 * round) % 6);
  return round == 3 ? 8000 * n : n;
}
static int32_t element_of_block(int p, int q, int round, size_t i) {
  return (int32_t)(1000000 * p + 100000 * q + 10000 * round + (int)(i % 9999));
}

/* Blocks lie in descending order with a gap of one element before each, or one after another. */
static void lay_out(struct exchange* e, int round, int gaps) {
  size_t in = 0, out = 0;
  for (int k = 0; k < size; ++k) {
    const int q = gaps ? size - 1 - k : k;
    e->sends[q] = block_of(rank, q, round);
    e->receives[q] = block_of(q, rank, round);
    in += (size_t)gaps, out += (size_t)gaps;
    e->send_begins[q] = in, e->receive_begins[q] = out;
    in += e->sends[q], out += e->receives[q];
  }
  EXPECT(in <= kRoom && out <= kRoom);
}

static void fill_blocks(struct exchange* e, int round) {
  for (int q = 0; q < size; ++q)
    for (size_t i = 0; i < e->sends[q]; ++i)
      e->in[e->send_begins[q] + i] = element_of_block(rank, q, round, i);
  memset(e->out, 0xff, sizeof e->out);
}

static void expect_blocks(const struct exchange* e, int round) {
  size_t written = 0, found = 0;
  for (int p = 0; p < size; ++p) {
    written += e->receives[p];
    for (size_t i = 0; i < e->receives[p]; ++i)
      EXPECT(e->out[e->receive_begins[p] + i] == element_of_block(p, rank, round, i));
  }
  for (size_t i = 0; i < kRoom; ++i) found += e->out[i] != -1;
  EXPECT(found == written);
}

static void plan_exchange(struct exchange* e, int round, int gaps) {
  const tutti_comm_plan_options options = {
      .size = sizeof options, .name = "tokens", .priority = round};
  lay_out(e, round, gaps);
  OK(tutti_comm_plan_exchange(world, e->in, e->sends, gaps ? e->send_begins : NULL, e->out,
                              e->receives, gaps ? e->receive_begins : NULL, TUTTI_COMM_I32,
                              gaps ? &options : NULL, &e->plan));
}

/* Two exchanges are under way, with other counts every time; the program waits first for the one
 * started last. */
static void check_exchanges(void) {
  static struct exchange first, second;
  int done = 0;
  for (int round = 0; round < 6; ++round) {
    plan_exchange(&first, round, round % 2);
    plan_exchange(&second, round + 1, round % 3 == 0);
    fill_blocks(&first, round);
    fill_blocks(&second, round + 1);
    OK(tutti_comm_start(first.plan));
    OK(tutti_comm_start(second.plan));
    FAILS(TUTTI_COMM_ERROR_STATE, "in flight", tutti_comm_start(second.plan));
    FAILS(TUTTI_COMM_ERROR_STATE, "in flight", tutti_comm_plan_destroy(second.plan));
    OK(tutti_comm_wait(second.plan));
    for (done = 0; !done;) OK(tutti_comm_test(first.plan, &done));
    expect_blocks(&first, round);
    expect_blocks(&second, round + 1);
    fill_blocks(&second, round + 1);
    run(second.plan); /* once more, as it was planned */
    expect_blocks(&second, round + 1);
    OK(tutti_comm_plan_destroy(first.plan));
    OK(tutti_comm_plan_destroy(second.plan));
  }
}

static int exchange_of(const size_t* sends, const size_t* receives, char* in, char* out, int type,
                       const tutti_comm_plan_options* options) {
  static tutti_comm_plan* plan;
  const int status =
      tutti_comm_plan_exchange(world, in, sends, NULL, out, receives, NULL, type, options, &plan);
  EXPECT(plan == NULL);
  return status;
}

/* The calls are of this rank alone, so no rank waits, and the next exchange matches the others'
 * next one. */
static void check_refused_exchanges(void) {
  size_t ones[kMostBlocks], uneven[kMostBlocks], huge[kMostBlocks];
  char in[kMostBlocks] = {0}, out[kMostBlocks];
  const int type = TUTTI_COMM_BYTE;
  const char* name = NULL;
  tutti_comm_plan* plan = NULL;
  for (int q = 0; q < size; ++q) ones[q] = uneven[q] = huge[q] = 1;
  uneven[rank] = 2;
  huge[rank] = (size_t)-1;
  REFUSES("sends itself", exchange_of(ones, uneven, in, out, type, NULL));
  REFUSES("any memory", exchange_of(huge, huge, in, out, type, NULL));
  REFUSES("send_counts is NULL", exchange_of(NULL, ones, in, out, type, NULL));
  REFUSES("receive_counts is NULL", exchange_of(ones, NULL, in, out, type, NULL));
  REFUSES("without a buffer", exchange_of(ones, ones, in, NULL, type, NULL));
  REFUSES("overlap", exchange_of(ones, ones, in, in, type, NULL));
  const size_t same_place[kMostBlocks] = {0};
  if (size > 1)
    REFUSES(
        "blocks from ranks 0 and 1 overlap",
        tutti_comm_plan_exchange(world, in, ones, NULL, out, ones, same_place, type, NULL, &plan));
  REFUSES("no enum tutti_comm_type", exchange_of(ones, ones, in, out, 99, NULL));
  tutti_comm_plan_options options = {.size = sizeof options, .algorithm = "pairwise"};
  REFUSES("an exchange has no algorithm", exchange_of(ones, ones, in, out, type, &options));
  options = (tutti_comm_plan_options){.size = sizeof options, .rebindable = 1};
  REFUSES("come with its counts", exchange_of(ones, ones, in, out, type, &options));
  memset(in, rank, sizeof in);
  OK(tutti_comm_plan_exchange(world, in, ones, NULL, out, ones, NULL, type, NULL, &plan));
  FAILS(TUTTI_COMM_ERROR_STATE, "`rebindable`", tutti_comm_plan_rebind(plan, in, out));
  REFUSES("nor has an exchange", tutti_comm_plan_algorithm(plan, &name));
  run(plan);
  for (int p = 0; p < size; ++p) EXPECT(out[p] == p);
  OK(tutti_comm_plan_destroy(plan));
}
