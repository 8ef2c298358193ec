#pragma once
/* tutti_comm: collectives among the ranks of a job, planned once and started as often as wanted.
 * C99; man tutti_comm(3).
 *
 *   tutti_comm_init -> tutti_comm_plan_* -> (tutti_comm_start, compute, tutti_comm_wait)... ->
 * tutti_comm_plan_destroy -> tutti_comm_finalize
 *
 * Status   Every function except the three that describe the library returns TUTTI_COMM_OK or
 *          another enum tutti_comm_status; tutti_comm_last_error() then says what failed, on which
 *          rank, and what to do. A call that fails writes no output, and no C++ exception leaves
 *          the library. Two things end the process: tutti_comm_abort(), and the loss of a rank in
 *          the moment in which MPI itself starts, ends, or makes a group, because MPI cannot give
 *          up on it; all ranks have met right before that. After the time-out stderr reports it.
 * Ranks    "Collective" below means: all ranks of the communicator make the call, in the same
 *          order. If such a tutti_comm_plan_* is refused on one rank, it is an error on all, and
 *          the communicator stays usable. Exceptions, which the other ranks do not learn of: a null
 *          handle, count array or result pointer, an unknown type or operation, options of a wrong
 *          size, an amount that no memory holds. A call "of this rank alone" is refused on this
 *          rank only.
 * Failure  After TUTTI_COMM_ERROR_FAILED the process may do anything that needs no other rank, such
 *          as writing a file. The remaining ranks give back what they have and call
 *          tutti_comm_finalize, none of which then waits for others. They may make a new job among
 *          themselves in the same processes: with tutti_comm_init_tcp or tutti_comm_init_store,
 *          even if the first job used MPI, or with tutti_comm_init if no rank was lost.
 * Waits    Every wait has a time-out (60 seconds unless set), except waits for patient messages.
 *          The time-out measures silence: it begins anew when rounds or messages of the plan
 *          arrive. The death of a peer on the same node is noticed within a second, without MPI on
 *          any node.
 * Threads  With MPI one thread at a time makes calls: the one that called tutti_comm_init, unless
 *          the program has started MPI itself with MPI_THREAD_SERIALIZED or more. Without MPI any
 *          threads may call at the same time, with these limits: init and finalize run alone; one
 *          thread at a time uses a plan; and the collective calls of a communicator, and the starts
 *          of its exchanges, come in the same order on all ranks, so from one thread or from
 *          several in turn. During a collective call, other calls of its communicator that are
 *          collective, or destroy, wait. Plans of this rank alone, start, test, wait, and calls
 *          without a plan wait for no other thread. Each thread has its own last error.
 * Memory   Buffers belong to the caller and are not copied. The plan uses them from start to
 *          completion; a plan that failed under way in a job of MPI, which cannot give buffers
 *          back, uses them to the end of the process. They outlive their plans. A handle may not be
 *          used after it was destroyed, nor after tutti_comm_finalize.
 * ABI      Programs linked with libtutticomm.so.0 run with every later libtutticomm.so.0: functions
 *          and constants are only added, and options only grow at their end, as their `size` member
 *          shows. */

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

/* Options: set `size` to sizeof of the struct; every other member may be left zero. NULL instead of
 * options means all defaults. */
typedef struct tutti_comm_init_options {
  size_t size;
  double timeout;       /* seconds, of every wait; 0: 60 */
  int private_memory;   /* not 0: ranks of one node exchange messages through MPI or TCP too, not
                           through shared memory */
  int reserved;         /* 0 */
  int progress_threads; /* threads of the library that progress plans between start and wait; with
                           MPI they need MPI_THREAD_MULTIPLE. 0: only the program's calls do */
  int reserved2;        /* 0 */
  const char* address; /* where other ranks connect to, if TCP is used: an address or a name of this
                          host, an interface (ib0), or a network (10.1.0.0/16); NULL: all addresses
                          of this host, or, if tutti_comm_init_tcp's store is on 127.0.0.1 or ::1,
                          that address */
} tutti_comm_init_options;

/* A place where the ranks of a job leave short values for each other. Both functions return 0, or
 * another code for a failure. Any thread that calls this library, and its progress threads, may
 * call them; they do not call this library. Values are bytes, at most 65,536. */
typedef struct tutti_comm_store {
  size_t size;
  void* context; /* passed to the functions */
  int (*set)(void* context, const char* key, const void* value, size_t bytes);
  /* Waits until the key is set, for at most so many seconds; 0: does not wait. Writes the value, of
   * at most capacity bytes, and its length. Returns 1 if the key is not set. */
  int (*get)(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
             double seconds);
} tutti_comm_store;

/* Options must be the same on every rank. */
typedef struct tutti_comm_plan_options {
  size_t size;
  const char* name;      /* for messages: "gradient 3"; NULL: the collective's own */
  const char* algorithm; /* pairwise, recursive_doubling, recursive_halving, ring, binomial,
                            double_tree, two_level, ring_2d, bruck; NULL: chosen by the selection */
  size_t chunk;     /* elements of the long vector; a larger broadcast, reduce or allreduce runs as
                       chunks, between which more urgent plans pass, and so does a reduce_scatter or
                       allgather of up to 32 ranks by two_level or pairwise; 0: one piece, except
                       for long vectors between nodes */
  int priority;     /* among plans in flight the higher goes first */
  int reproducible; /* not 0: the same bits with any algorithm; others are refused */
  int rebindable;   /* not 0: the buffers come with tutti_comm_plan_rebind, before the first start;
                       those of the plan's own function are ignored. Only for messages it may differ
                       between ranks */
  int reserved;     /* 0 */
} tutti_comm_plan_options;

/* ---- The library. Thread-safe, at any time. ---- */
/* Returns TUTTI_COMM_VERSION of the loaded library, which may be later than the header's. */
int tutti_comm_version(void);
/* Returns the message of this thread's last failed call; "" before there was one. Valid until this
 * thread's next failing call. */
const char* tutti_comm_last_error(void);
/* Returns a name such as "TUTTI_COMM_ERROR_STATE"; "unknown status" for other numbers. */
const char* tutti_comm_status_name(int status);

/* ---- The job ---- */
/* Collective over all ranks that the launcher started. Starts MPI, or uses it if the program has
 * started it; the program then finalises it after tutti_comm_finalize. argc, argv: main's, for MPI,
 * or NULL. */
int tutti_comm_init(int* argc, char*** argv, const tutti_comm_init_options* options);
/* Does the same over the ranks of an MPI communicator of the program, given by its Fortran handle,
 * MPI_Comm_c2f(c). MPI has been started. */
int tutti_comm_init_fortran_comm(int mpi_comm, const tutti_comm_init_options* options);
/* Collective. Does the same without MPI over `size` processes, each of another rank, that have the
 * same store and prefix. No two groups may have the same prefix in a store. The library uses store,
 * and what it points to, until finalize. Anyone who can read the store can join. */
int tutti_comm_init_store(const tutti_comm_store* store, int rank, int size, const char* prefix,
                          const tutti_comm_init_options* options);
/* Collective. Starts without MPI and without a store: rank 0 serves one at address, "host:port" or
 * "[::1]:port", which must be an address of rank 0's host (ARGUMENT there otherwise). secret: the
 * same on every rank, known to nobody else; NULL: TUTTI_STORE_SECRET of the environment. No two
 * jobs may have the same address. */
int tutti_comm_init_tcp(const char* address, const char* secret, int rank, int size,
                        const tutti_comm_init_options* options);
/* Collective. STATE while plans, memory or communicators are left. Afterwards init is possible
 * again if the program started MPI, or without MPI. After a failure the call is of this rank alone,
 * and leaves MPI running. A launcher takes a process that ends so for a failed one and may end the
 * job, so the remaining ranks should meet before they end. */
int tutti_comm_finalize(void);
/* Prints the rank and `message` on stderr and ends the whole job with this exit code; without
 * MPI it ends this process, and the other ranks' waits fail. Returns only if it cannot. Not
 * collective. */
int tutti_comm_abort(tutti_comm* comm, int code, const char* message);

/* ---- Communicators ---- */
/* Gives the communicator of all ranks of the job. It belongs to the library. */
int tutti_comm_world(tutti_comm** comm);
/* Collective. Makes a communicator of the ranks with equal color (0 or more), ordered by key, then
 * by rank. It takes time-out and selection from comm. */
int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part);
/* Collective over `size` processes that have the same store and prefix, as tutti_comm_init_store,
 * but needs no job and no MPI. Makes an independent communicator, beside the job's and any number
 * of others, each with its own prefix; it belongs to the caller. */
int tutti_comm_create(const tutti_comm_store* store, int rank, int size, const char* prefix,
                      const tutti_comm_init_options* options, tutti_comm** comm);
/* Destroys a communicator from split or create. Collective with MPI; without it, and after a
 * failure, of this rank alone. STATE while it has plans or memory. NULL: does nothing. */
int tutti_comm_destroy(tutti_comm* comm);
int tutti_comm_rank(const tutti_comm* comm, int* rank);
int tutti_comm_size(const tutti_comm* comm, int* size);
int tutti_comm_local_rank(const tutti_comm* comm, int* rank); /* among the ranks of this node */
int tutti_comm_local_size(const tutti_comm* comm, int* size);
/* Gives the name of the host on which `rank` runs; valid as long as comm. */
int tutti_comm_host(const tutti_comm* comm, int rank, const char** host);
/* Collective. Returns when every rank has called it. */
int tutti_comm_barrier(tutti_comm* comm);
/* Sets the time-out of every later wait, in seconds. */
int tutti_comm_set_timeout(tutti_comm* comm, double seconds);
/* Later plans without an algorithm take it from this file: from the first line "collective ranks
 * topology bytes reproducible algorithm" that fits (ranks and bytes are upper bounds; topology is
 * node or nodes; reproducible is yes or no; each may be *). If none fits, the library chooses.
 * `tutti bench comm --tune` writes such a file. All ranks need the same table. */
int tutti_comm_set_selection_file(tutti_comm* comm, const char* path);

/* ---- Memory ---- */
/* Collective. Allocates zeroed memory, aligned to 64 bytes; bytes may differ between ranks, and 0
 * bytes have an address, too. If all ranks are on one node, they read each other's memory in place,
 * so plans on it make no unnecessary copies. Plans on any other memory work as well. */
int tutti_comm_alloc(tutti_comm* comm, size_t bytes, void** data);
/* Frees memory. Call it when no plan on any rank's share of it will be started any more. Not
 * collective. NULL: does nothing. */
int tutti_comm_free(void* data);

/* ---- Plans. All are collective except exchanges and messages. ---- */
/* type, op, count, counts, root and options are the same on every rank. input and output may begin
 * together; for allgather, gather, scatter and reduce_scatter the short one may instead be this
 * rank's part of the long one; for all_to_all they must not overlap. Other overlaps are ARGUMENT. A
 * buffer may be NULL if the rank gives or receives nothing. count: elements. */
int tutti_comm_plan_barrier(tutti_comm* comm, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* buffer: count elements, read at the root, written on other ranks. */
int tutti_comm_plan_broadcast(tutti_comm* comm, void* buffer, size_t count, int type, int root,
                              const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* input, output: count elements; output is written at the root. input NULL: output holds the
 * input. */
int tutti_comm_plan_reduce(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int op, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan);
/* input, output: count elements. input NULL: output holds the input. */
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
/* Does the same, with an output only at the root. */
int tutti_comm_plan_gather(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan);
int tutti_comm_plan_gatherv(tutti_comm* comm, const void* input, void* output, const size_t* counts,
                            int type, int root, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* input: the long vector, only at the root; output: this rank's part. */
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
 * receive_begins[q] of output. Each rank has its own counts and begins; begins NULL: one block
 * after another. Blocks of input may overlap, blocks of output may not. If a sender's count differs
 * from its receiver's, no rank gets a plan: ARGUMENT. */
int tutti_comm_plan_all_to_allv(tutti_comm* comm, const void* input, const size_t* send_counts,
                                const size_t* send_begins, void* output,
                                const size_t* receive_counts, const size_t* receive_begins,
                                int type, const tutti_comm_plan_options* options,
                                tutti_comm_plan** plan);
/* Of this rank alone. Plans the blocks of tutti_comm_plan_all_to_allv for counts that differ every
 * time. Ranks agree on nothing, and planning costs no message. The k-th exchange that a rank starts
 * on a communicator, with any plan, meets the k-th of every other rank: so all ranks start equally
 * many, in one order, but may wait in any order. Blocks travel as messages inside a node, too.
 * input and output must not overlap, nor may blocks of output. All errors are this rank's own. A
 * refused call is ARGUMENT, of which the others do not learn: they wait until their time-out. If a
 * sender's count differs from its receiver's, the receiver's test or wait is FAILED. Only the
 * options name and priority are used; others are refused. */
int tutti_comm_plan_exchange(tutti_comm* comm, const void* input, const size_t* send_counts,
                             const size_t* send_begins, void* output, const size_t* receive_counts,
                             const size_t* receive_begins, int type,
                             const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* Plans a message of bytes from one rank to another, matched by peer and tag (0 to 16000), in
 * order. Only the two ranks call. The sender's plan is complete when the receiver's was started. At
 * most 2^30 bytes. patient, not 0: waits for it have no time-out, but fail when the peer dies. Only
 * the options name, priority and rebindable are used; others are refused. */
int tutti_comm_plan_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag,
                         int patient, const tutti_comm_plan_options* options,
                         tutti_comm_plan** plan);
/* bytes: capacity; tutti_comm_received gives the number of bytes received. */
int tutti_comm_plan_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                            int patient, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan);
/* Sets the buffers of later starts of a rebindable plan, as its own function takes them (a
 * broadcast's is output; a message is sent from input and received to output; a plan for another
 * rank's memory uses the one that is not NULL). Not collective, not while in flight. */
int tutti_comm_plan_rebind(tutti_comm_plan* plan, const void* input, void* output);
/* Destroys a plan. Not collective; not while in flight, except after a failure. NULL: does
 * nothing. */
int tutti_comm_plan_destroy(tutti_comm_plan* plan);
/* Gives the name of the algorithm in use; valid as long as the plan. */
int tutti_comm_plan_algorithm(const tutti_comm_plan* plan, const char** name);
/* Prints this rank's schedule of the first chunk, one line per step. Writes at most capacity bytes,
 * the last of them 0, and the length of the whole text to length, which may be NULL; text may be
 * NULL if capacity is 0. */
int tutti_comm_plan_print(const tutti_comm_plan* plan, char* text, size_t capacity, size_t* length);

/* ---- Messages without a plan: each call returns when its end is complete ---- */
/* The other end is a call of this kind, or a plan: they match as the messages of plans do. A send
 * returns when the receive was started; after FAILED it is unknown whether the receiver has the
 * message. So two ranks that both send first wait for each other until their time-out; plans can do
 * both at once. */
int tutti_comm_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag);
/* bytes: capacity; received, which may be NULL: number of bytes received. */
int tutti_comm_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                       size_t* received);

/* ---- Memory that all ranks put to, get from and accumulate into ---- */
/* Collective; bytes may differ between ranks. data, which may be NULL, receives the beginning of
 * this rank's memory, which is zeroed. A rank serves the others whenever it makes progress: in
 * tests and waits of any plan, in tutti_comm_memory_wait, or by progress threads. */
int tutti_comm_expose(tutti_comm* comm, size_t bytes, void** data, tutti_comm_memory** memory);
/* Frees the memory. Call it when no rank accesses any rank's share any more, as after a barrier.
 * Not collective. NULL: does nothing. */
int tutti_comm_memory_free(tutti_comm_memory* memory);
/* Plans of this rank alone: access bytes, or count elements, at byte offset of rank's memory; data
 * is this rank's. Accesses to one target run in the order of their starts. They are complete when
 * the memory has changed, or the data have arrived. Only the options name, priority and rebindable
 * are used; others are refused. */
int tutti_comm_plan_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                        size_t offset, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan);
/* atomic, not 0: reads the memory between two accumulates, never in the midst of one. */
int tutti_comm_plan_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank,
                        size_t offset, int atomic, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan);
/* Accumulates are applied whole, one after another: no sum is lost. MEAN is not available. */
int tutti_comm_plan_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                               int op, int rank, size_t offset,
                               const tutti_comm_plan_options* options, tutti_comm_plan** plan);
/* Does the same, and data receives the previous content. */
int tutti_comm_plan_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                          int rank, size_t offset, const tutti_comm_plan_options* options,
                          tutti_comm_plan** plan);
/* The same four without a plan: each returns when it is complete, and runs after the plans that
 * this rank has started for the same target. After FAILED it is unknown whether a put, accumulate
 * or fetch has been applied, or will be; an accumulate or fetch is applied whole or not at all. */
int tutti_comm_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                   size_t offset);
int tutti_comm_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank, size_t offset,
                   int atomic);
int tutti_comm_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                          int op, int rank, size_t offset);
int tutti_comm_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                     int rank, size_t offset);
/* Gives the number of accumulates and fetches that have been applied to this rank's memory. */
int tutti_comm_memory_accumulates(tutti_comm_memory* memory, size_t* count);
/* Waits until that number is at least count, without a time-out; FAILED if one of these ranks is
 * found dead. */
int tutti_comm_memory_wait(tutti_comm_memory* memory, size_t count, const int* ranks,
                           size_t number);
/* From hold to release no accumulate, fetch or atomic get is applied to this rank's memory, and
 * this rank may read and write it. */
int tutti_comm_memory_hold(tutti_comm_memory* memory);
int tutti_comm_memory_release(tutti_comm_memory* memory);

/* ---- Running. All ranks start the same plans; the order may differ, except for exchanges. ---- */
/* Starts the plan: until completion the caller neither writes the input nor reads the output. Does
 * not block. STATE if in flight. */
int tutti_comm_start(tutti_comm_plan* plan);
/* Progresses the plan, and sets done to 1 if it is complete (also if it was never started). Does
 * not block. */
int tutti_comm_test(tutti_comm_plan* plan, int* done);
/* Returns when the plan is complete; progresses every other plan of the communicator meanwhile. */
int tutti_comm_wait(tutti_comm_plan* plan);
/* Does the same for at most so many seconds: done = 0 if they have passed. Its time-out begins anew
 * with every call. Peers are checked after 0.2 seconds, so with less a dead one is not noticed. */
int tutti_comm_wait_for(tutti_comm_plan* plan, double seconds, int* done);

/* Gives the number of bytes that the last message of a receive brought, once it is complete. */
int tutti_comm_received(const tutti_comm_plan* plan, size_t* bytes);

#ifdef __cplusplus
}
#endif
