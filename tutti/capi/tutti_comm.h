#pragma once
/* tutti_comm: collectives among the ranks of a job, planned once and started as often as wanted.
 * C99; man tutti_comm(3).
 *
 *   tutti_comm_init -> tutti_comm_plan_* -> (tutti_comm_start, compute, tutti_comm_wait)... ->
 * tutti_comm_plan_destroy -> tutti_comm_finalize
 *
 * Status   Every function but the three that describe the library returns TUTTI_COMM_OK or another
 *          enum tutti_comm_status; then tutti_comm_last_error() says what, on which rank, and what
 *          to do. No output is written by a call that fails, and no C++ exception comes out. Two
 *          things end the process: tutti_comm_abort(); and, because MPI cannot give up on it, a
 *          rank that is lost in the moment in which MPI itself starts, ends, or makes a group: all
 *          ranks have met right before that. After the time-out stderr says so.
 * Ranks    "Collective" below: all ranks of the communicator make the call, in the same order. What
 *          such a tutti_comm_plan_* refuses on one rank is an error on all, and the communicator
 *          stays usable. Exceptions, which the other ranks are not told of: a null handle, count
 *          array or result pointer, an unknown type or operation, options of a wrong size, an amount
 *          that no memory holds. What is "of this rank alone" is refused here alone.
 * Failure  After TUTTI_COMM_ERROR_FAILED the process may do what it likes alone, such as writing a
 *          file. The ranks that are left give back what they have and call tutti_comm_finalize,
 *          none of which waits for others then, and may make a new job among themselves in the
 *          same processes: tutti_comm_init_tcp or tutti_comm_init_store, also where the first job
 *          was MPI's; tutti_comm_init where nobody was lost.
 * Waits    No wait is without a time-out (60 seconds unless set) but those for patient messages.
 *          The time-out is for silence: while rounds or messages of the plan arrive it begins anew.
 *          A peer of the same node that has died is noticed within a second, without MPI one of any
 *          node.
 * Threads  With MPI calls are made by one thread at a time: the one that called tutti_comm_init,
 *          unless the program has started MPI itself with MPI_THREAD_SERIALIZED or more. Without
 *          MPI any threads may call at the same time, but: init and finalize alone; one plan by one
 *          thread at a time; and the collective calls of one communicator, and the starts of its
 *          exchanges, in the same order on all ranks, so by one thread or in turns. While a
 *          collective call lasts, others of its communicator that are collective, or destroy, wait.
 *          Plans of this rank alone, start, test, wait, and what needs no plan wait for no other
 *          thread. Last errors are each thread's own.
 * Memory   Buffers belong to the caller, are not copied, and are the plan's from start to
 *          completion; of a plan that failed under way in a job of MPI, which cannot take back what
 *          it was given, to the end of the process. They outlive their plans. A handle is not used
 *          after it was destroyed, nor after tutti_comm_finalize.
 * ABI      Programs linked with libtutticomm.so.0 run with every later libtutticomm.so.0: functions
 *          and constants are only added, and options only grow at their end, which their `size`
 *          member tells. */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_COMM_VERSION_MAJOR 0
#define TUTTI_COMM_VERSION_MINOR 1
#define TUTTI_COMM_VERSION_PATCH 0
#define TUTTI_COMM_VERSION \
  (TUTTI_COMM_VERSION_MAJOR * 10000 + TUTTI_COMM_VERSION_MINOR * 100 + TUTTI_COMM_VERSION_PATCH)

enum tutti_comm_status {
  TUTTI_COMM_OK = 0,
  TUTTI_COMM_ERROR_ARGUMENT =
      1, /* a value that the caller must change, or one that differs between ranks */
  TUTTI_COMM_ERROR_STATE =
      2, /* a call out of order: before init, started twice, destroyed while in use */
  TUTTI_COMM_ERROR_FAILED = 3,  /* communication failed: time-out, dead peer, MPI; see Failure */
  TUTTI_COMM_ERROR_FILE = 4,    /* a file that cannot be read */
  TUTTI_COMM_ERROR_MEMORY = 5,  /* not enough memory */
  TUTTI_COMM_ERROR_INTERNAL = 6 /* a bug in this library */
};

/* Sums and products are taken in the type itself, those of BF16 and F16 in F32; integers wrap
 * around. BYTE can be moved, not reduced. */
enum tutti_comm_type {
  TUTTI_COMM_F32 = 0,
  TUTTI_COMM_F64 = 1,
  TUTTI_COMM_BF16 = 2,
  TUTTI_COMM_F16 = 3,
  TUTTI_COMM_I8 = 4,
  TUTTI_COMM_I32 = 5,
  TUTTI_COMM_BYTE = 6,
  TUTTI_COMM_I64 = 7,
  TUTTI_COMM_U8 = 8
};

/* MEAN is the sum divided by the number of ranks, for integers towards zero. */
enum tutti_comm_op {
  TUTTI_COMM_SUM = 0,
  TUTTI_COMM_MIN = 1,
  TUTTI_COMM_MAX = 2,
  TUTTI_COMM_MEAN = 3,
  TUTTI_COMM_PRODUCT = 4
};

typedef struct tutti_comm tutti_comm;           /* a group of ranks */
typedef struct tutti_comm_plan tutti_comm_plan; /* a collective of a group, ready to be started */
typedef struct tutti_comm_memory tutti_comm_memory; /* what each rank exposes to all others */

/* Options: `size` is sizeof of the struct, every other member may be left zero. NULL in place of
 * options: all defaults. */
typedef struct tutti_comm_init_options {
  size_t size;
  double timeout;       /* seconds, of every wait; 0: 60 */
  int private_memory;   /* not 0: ranks of one node exchange messages through MPI or TCP too, not
                           through shared memory */
  int reserved;         /* 0 */
  int progress_threads; /* threads of the library that move plans on between start and wait; with
                           MPI it needs MPI_THREAD_MULTIPLE. 0: whoever starts, tests and waits */
  int reserved2;        /* 0 */
  const char* address;  /* what other ranks connect to, where TCP is used: an address or a name of
                           this host, an interface (ib0), or a network (10.1.0.0/16); NULL: all
                           addresses of this host, or, where tutti_comm_init_tcp's store is on
                           127.0.0.1 or ::1, that one */
} tutti_comm_init_options;

/* A place where the ranks of a job leave short values for each other. Both functions return 0, or
 * another code for a failure; they may be called by any thread that calls this library, and by its
 * progress threads, and do not call this library. Values are bytes, at most 65,536. */
typedef struct tutti_comm_store {
  size_t size;
  void* context; /* for the functions */
  int (*set)(void* context, const char* key, const void* value, size_t bytes);
  /* Waits for somebody to set the key, for at most so many seconds, which may be 0: not at all.
   * Writes the value, of at most capacity bytes, and its length. Returns 1 where nobody has. */
  int (*get)(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
             double seconds);
} tutti_comm_store;

/* The same on every rank. */
typedef struct tutti_comm_plan_options {
  size_t size;
  const char* name;      /* for messages: "gradient 3"; NULL: the collective's own */
  const char* algorithm; /* pairwise, recursive_doubling, recursive_halving, ring, binomial,
                            double_tree, two_level, ring_2d, bruck; NULL: by the selection */
  size_t chunk;     /* elements of the long vector; a larger broadcast, reduce or allreduce runs as
                       chunks, between which more urgent plans pass, and so does a reduce_scatter or
                       allgather of up to 32 ranks by two_level or pairwise; 0: one piece, but for
                       long vectors between nodes */
  int priority;     /* of plans in flight together, the higher goes first */
  int reproducible; /* not 0: the same bits by whatever algorithm; those that cannot are refused */
  int rebindable;   /* not 0: the buffers come with tutti_comm_plan_rebind, before the first start;
                       those of the plan's own function are not looked at. May differ from rank to
                       rank for messages only */
  int reserved;     /* 0 */
} tutti_comm_plan_options;

/* ---- The library. Thread-safe, at any time. ---- */
/* TUTTI_COMM_VERSION of the library that runs, which may be later than the header's. */
int tutti_comm_version(void);
/* What the last call of this thread that failed had to say; "" before there was one. Valid until
 * this thread's next failing call. */
const char* tutti_comm_last_error(void);
/* "TUTTI_COMM_ERROR_STATE"; "unknown status" for other numbers. */
const char* tutti_comm_status_name(int status);

/* ---- The job ---- */
/* Collective over all ranks that the launcher started. Starts MPI, or uses the one that the program
 * has started and will finalise itself after tutti_comm_finalize. argc, argv: main's, for MPI, or
 * NULL. */
int tutti_comm_init(int* argc, char*** argv, const tutti_comm_init_options* options);
/* The same over the ranks of an MPI communicator of the program: its Fortran handle,
 * MPI_Comm_c2f(c). MPI has been started. */
int tutti_comm_init_fortran_comm(int mpi_comm, const tutti_comm_init_options* options);
/* Collective. Without MPI: the same over `size` processes, each of another rank, that have the same
 * store and prefix. No two groups have the same prefix in a store. store and what it points to are
 * used until finalize. Who can read the store can join. */
int tutti_comm_init_store(const tutti_comm_store* store, int rank, int size, const char* prefix,
                          const tutti_comm_init_options* options);
/* Collective. Without MPI and a store: rank 0 serves one at address, "host:port" or "[::1]:port",
 * an address of rank 0's host, which is ARGUMENT there otherwise. secret: the same on every rank,
 * known to nobody else; NULL: that of the environment, TUTTI_STORE_SECRET. No two jobs have the
 * same address. */
int tutti_comm_init_tcp(const char* address, const char* secret, int rank, int size,
                        const tutti_comm_init_options* options);
/* Collective. STATE while plans, memory or communicators are left. After it, init is possible again
 * where the program started MPI, or without MPI. After a failure it is of this rank alone, and
 * leaves MPI running. A launcher takes a process that ends so for a failed one and may end the
 * job, so the ranks that are left should meet before they end. */
int tutti_comm_finalize(void);
/* Prints the rank and `message` on stderr and ends the whole job with this exit code; without MPI,
 * this process, and the other ranks' waits fail. Returns only if it cannot. Not collective. */
int tutti_comm_abort(tutti_comm* comm, int code, const char* message);

/* ---- Communicators ---- */
/* All ranks of the job. Belongs to the library. */
int tutti_comm_world(tutti_comm** comm);
/* Collective. The ranks with equal color (0 or more), ordered by key, then by rank. Time-out and
 * selection are comm's. */
int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part);
/* Collective over `size` processes that have the same store and prefix, as tutti_comm_init_store,
 * and need no job and no MPI. A communicator of its own, beside the job's and as many others as are
 * wanted, each with its own prefix; it belongs to the caller. */
int tutti_comm_create(const tutti_comm_store* store, int rank, int size, const char* prefix,
                      const tutti_comm_init_options* options, tutti_comm** comm);
/* Over a communicator from split or create; with MPI collective, without it, and after a failure,
 * of this rank alone. STATE while it has plans or memory. NULL: nothing is done. */
int tutti_comm_destroy(tutti_comm* comm);
int tutti_comm_rank(const tutti_comm* comm, int* rank);
int tutti_comm_size(const tutti_comm* comm, int* size);
int tutti_comm_local_rank(const tutti_comm* comm, int* rank); /* among the ranks of this node */
int tutti_comm_local_size(const tutti_comm* comm, int* size);
/* The name of the host that `rank` runs on; valid as long as comm. */
int tutti_comm_host(const tutti_comm* comm, int rank, const char** host);
/* Collective. Returns when every rank has come. */
int tutti_comm_barrier(tutti_comm* comm);
/* Seconds, of every later wait. */
int tutti_comm_set_timeout(tutti_comm* comm, double seconds);
/* Later plans without an algorithm take it from this file, the first line "collective ranks
 * topology bytes reproducible algorithm" that fits (ranks and bytes are upper bounds; topology is
 * node or nodes; reproducible is yes or no; each may be *), and the library's own choice where none
 * does. `tutti bench comm --tune` writes such a file. All ranks need the same table. */
int tutti_comm_set_selection_file(tutti_comm* comm, const char* path);

/* ---- Memory ---- */
/* Collective. Zeroed memory, aligned to 64 bytes; bytes may differ between ranks, and 0 bytes have
 * an address too. Where all ranks are on one node they read each other's in place: plans on it copy
 * nothing that they need not. Plans on any other memory work as well. */
int tutti_comm_alloc(tutti_comm* comm, size_t bytes, void** data);
/* When no plan with some rank's share of it will be started any more. Not collective. NULL: nothing
 * is done. */
int tutti_comm_free(void* data);

/* ---- Plans. All are collective but exchanges and messages. ---- */
/* type, op, count, counts, root and options are the same on every rank. input and output may begin
 * together; of allgather, gather and scatter the short one may be this rank's part of the long one
 * instead, of reduce_scatter, too; of all_to_all they lie apart. Other overlaps are ARGUMENT. Where
 * a rank gives or receives nothing, a buffer may be NULL. count: elements. */
int tutti_comm_plan_barrier(tutti_comm* comm, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* buffer: count elements, read at the root, written elsewhere. */
int tutti_comm_plan_broadcast(tutti_comm* comm, void* buffer, size_t count, int type, int root,
                              const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* input, output: count elements; output is written at the root. input NULL: it is in output. */
int tutti_comm_plan_reduce(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int op, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan);
/* input, output: count elements. input NULL: it is in output. */
int tutti_comm_plan_allreduce(tutti_comm* comm, const void* input, void* output, size_t count,
                              int type, int op, const tutti_comm_plan_options* options,
                              tutti_comm_plan** plan);
/* Every rank's part of the long vector has count elements, or counts[rank]; parts lie one after
 * another in rank order. reduce_scatter: the long vectors are reduced, output is this rank's part.
 */
int tutti_comm_plan_reduce_scatter(tutti_comm* comm, const void* input, void* output, size_t count,
                                   int type, int op, const tutti_comm_plan_options* options,
                                   tutti_comm_plan** plan);
int tutti_comm_plan_reduce_scatterv(tutti_comm* comm, const void* input, void* output,
                                    const size_t* counts, int type, int op,
                                    const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* input: this rank's part; output: the long vector. */
int tutti_comm_plan_allgather(tutti_comm* comm, const void* input, void* output, size_t count,
                              int type, const tutti_comm_plan_options* options,
                              tutti_comm_plan** plan);
int tutti_comm_plan_allgatherv(tutti_comm* comm, const void* input, void* output,
                               const size_t* counts, int type,
                               const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* The same, with an output at the root alone. */
int tutti_comm_plan_gather(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan);
int tutti_comm_plan_gatherv(tutti_comm* comm, const void* input, void* output, const size_t* counts,
                            int type, int root, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* input: the long vector, at the root alone; output: this rank's part. */
int tutti_comm_plan_scatter(tutti_comm* comm, const void* input, void* output, size_t count,
                            int type, int root, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
int tutti_comm_plan_scatterv(tutti_comm* comm, const void* input, void* output,
                             const size_t* counts, int type, int root,
                             const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* input: count elements for each rank in rank order; output: count from each. */
int tutti_comm_plan_all_to_all(tutti_comm* comm, const void* input, void* output, size_t count,
                               int type, const tutti_comm_plan_options* options,
                               tutti_comm_plan** plan);
/* send_counts[q] elements from send_begins[q] of input go to rank q; those from rank q go to
 * receive_begins[q] of output. These are each rank's own; begins NULL: one block after another.
 * Blocks of input may overlap, those of output lie apart.
 * Where a sender's count is not its receiver's, no rank gets a plan: ARGUMENT. */
int tutti_comm_plan_all_to_allv(tutti_comm* comm, const void* input, const size_t* send_counts,
                                const size_t* send_begins, void* output,
                                const size_t* receive_counts, const size_t* receive_begins,
                                int type, const tutti_comm_plan_options* options,
                                tutti_comm_plan** plan);
/* Of this rank alone: the blocks of tutti_comm_plan_all_to_allv, for counts that are others every
 * time. Nothing is agreed, and planning costs no message. The k-th exchange that a rank starts on a
 * communicator, by whichever plans, meets the k-th of every other rank: so all ranks start as many,
 * in one order, while they may wait in any. Blocks travel as messages inside a node too. input and
 * output lie apart, and so do the blocks of output. All errors are this rank's own. What is refused
 * here is ARGUMENT, of which the others are not told: they wait until their time-out. Where a
 * sender's count is not its receiver's, the receiver's test or wait is FAILED. Of options, name and
 * priority count; the others are refused. */
int tutti_comm_plan_exchange(tutti_comm* comm, const void* input, const size_t* send_counts,
                             const size_t* send_begins, void* output, const size_t* receive_counts,
                             const size_t* receive_begins, int type,
                             const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* A message of bytes from one rank to another, matched by peer and tag (0 to 16000), in order. Of
 * the two ranks alone. The sender's plan is complete when the receiver's was started. At most 2^30
 * bytes. patient, not 0: waits for it have no time-out, but fail when the peer dies. Of options,
 * name, priority and rebindable count; the others are refused. */
int tutti_comm_plan_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag,
                         int patient, const tutti_comm_plan_options* options,
                         tutti_comm_plan** plan);
/* bytes: room; tutti_comm_received says how many came. */
int tutti_comm_plan_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                            int patient, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* Of a rebindable plan: the buffers of later starts, as its own function takes them (a broadcast's
 * is output; a message is sent from input and received to output; of a plan for another rank's
 * memory the one that is not NULL counts). Not collective, not while in flight. */
int tutti_comm_plan_rebind(tutti_comm_plan* plan, const void* input, void* output);
/* Not collective, not while in flight, but for after a failure. NULL: nothing is done. */
int tutti_comm_plan_destroy(tutti_comm_plan* plan);
/* The name of the algorithm in use; valid as long as the plan. */
int tutti_comm_plan_algorithm(const tutti_comm_plan* plan, const char** name);
/* This rank's schedule, a line a step, of the first chunk. Writes at most capacity bytes, the last
 * of them 0, and the length of the whole text to length, which may be NULL; text may be NULL when
 * capacity is 0. */
int tutti_comm_plan_print(const tutti_comm_plan* plan, char* text, size_t capacity, size_t* length);

/* ---- Messages without a plan: each call returns when its end is complete ---- */
/* The other end is a call of this kind, or a plan: they meet as the messages of plans do. A send
 * returns when the receive was started; after FAILED it is open whether the receiver has the
 * message. So two ranks that both send first wait for each other until
 * their time-out; plans do both at once. */
int tutti_comm_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag);
/* bytes: room; received, which may be NULL: how many came. */
int tutti_comm_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                       size_t* received);

/* ---- Memory that all ranks put to, get from and accumulate into ---- */
/* Collective; bytes is each rank's own. data, which may be NULL: where this rank's begins, zeroed.
 * A rank serves the others whenever it makes progress: in tests and waits of any plan, in
 * tutti_comm_memory_wait, or by progress threads. */
int tutti_comm_expose(tutti_comm* comm, size_t bytes, void** data, tutti_comm_memory** memory);
/* When nobody asks for anything in any rank's share any more, as after a barrier. Not collective.
 * NULL: nothing is done. */
int tutti_comm_memory_free(tutti_comm_memory* memory);
/* Plans of this rank alone: bytes, or count elements, at byte offset of rank's memory; data is this
 * rank's. Those for one target are done in the order of their starts. Complete when the memory has
 * changed, or the data are here. Of options, name, priority and rebindable count; the others are
 * refused. */
int tutti_comm_plan_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                        size_t offset, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan);
/* atomic, not 0: what is there between two accumulates, never in the midst of one. */
int tutti_comm_plan_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank,
                        size_t offset, int atomic, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan);
/* Each is applied whole, one after another: no sum is lost. No mean. */
int tutti_comm_plan_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                               int op, int rank, size_t offset,
                               const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* The same, and data becomes what was there before. */
int tutti_comm_plan_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                          int rank, size_t offset, const tutti_comm_plan_options* options,
                          tutti_comm_plan** plan);
/* The same four without a plan: each returns when it is complete, in its turn behind the plans that
 * this rank has started for the same target. After FAILED it is open whether a put, accumulate or
 * fetch has been applied, or will be; an accumulate or fetch is so whole or not at all. */
int tutti_comm_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                   size_t offset);
int tutti_comm_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank, size_t offset,
                   int atomic);
int tutti_comm_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                          int op, int rank, size_t offset);
int tutti_comm_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                     int rank, size_t offset);
/* How many accumulates and fetches have been applied to this rank's memory. */
int tutti_comm_memory_accumulates(tutti_comm_memory* memory, size_t* count);
/* Until there have been so many, without a time-out; FAILED when one of these ranks is found dead.
 */
int tutti_comm_memory_wait(tutti_comm_memory* memory, size_t count, const int* ranks,
                           size_t number);
/* From hold to release no accumulate, fetch or atomic get is applied here, and this rank may read
 * and write what they change. */
int tutti_comm_memory_hold(tutti_comm_memory* memory);
int tutti_comm_memory_release(tutti_comm_memory* memory);

/* ---- Running. All ranks start the same plans; the order may differ, but not of exchanges. ---- */
/* My share is ready: the input will not be written, the output not be read. Does not block. STATE
 * if in flight. */
int tutti_comm_start(tutti_comm_plan* plan);
/* Moves the plan on, and says whether it is complete (done = 1; also if it was never started). Does
 * not block. */
int tutti_comm_test(tutti_comm_plan* plan, int* done);
/* Returns when the plan is complete, moving every other plan of the communicator on meanwhile. */
int tutti_comm_wait(tutti_comm_plan* plan);
/* The same for at most so many seconds: done = 0 when they have passed. Its time-out begins anew
 * with every call. Peers are looked at after 0.2 seconds, so with less a dead one is not noticed.
 */
int tutti_comm_wait_for(tutti_comm_plan* plan, double seconds, int* done);

/* Bytes that the last message of a receive brought, once it is complete. */
int tutti_comm_received(const tutti_comm_plan* plan, size_t* bytes);

#ifdef __cplusplus
}
#endif
