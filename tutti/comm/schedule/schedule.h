#pragma once
// Schedule: what one rank does in a collective, as data. An algorithm (comm/algorithm/) is a
// function from a Task to a Schedule; the same object is executed (comm/run/schedule_run.h),
// printed (to_string) and priced (comm/cost/cost.h), and tests run it without any transport.
//
// A schedule is a list of rounds. In a round a rank posts all its receives and sends at once; when
// all of them are complete it does the local steps in order; then the next round begins. The k-th
// message that rank a sends to rank b in a schedule is the k-th that b receives from a in its own.
// Ranks need not be in the same round.
//
// Blocks are counted in elements, so one schedule serves every type. The space of a block
// determines the type of its elements:
//   input, output, staging   the collective's own type
//   accumulator              the type in which sums are taken: f32 for 16-bit floats, otherwise the
//                            same
// A partial sum that travels on travels as accumulator: 16-bit data are rounded once, at the end,
// in every algorithm.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::comm {

enum class Collective : uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  reduce_scatter,
  allgather,
  gather,
  scatter,
  all_to_all
};
inline constexpr int kCollectives = 9;
std::string_view name_of(Collective kind);
/// Returns whether the collective adds (or compares) elements, rather than only moving them.
bool reduces(Collective kind);
/// Returns whether each rank has a part of the long vector, which it gives or gets.
bool has_parts(Collective kind);

/// Elements [begin, begin + count) of a buffer.
struct Slice {
  size_t begin = 0;
  size_t count = 0;
  size_t end() const { return begin + count; }
  bool operator==(const Slice&) const = default;
};

/// Cuts `count` elements into `parts` slices of (nearly) equal size whose bounds are multiples of
/// 16 elements (a cache line of floats).
std::vector<Slice> balanced_parts(size_t count, int parts);

/// Describes a sum over replicas rather than over ranks, in the tree of comm/schedule/tree.h: rank
/// p runs the replicas [first[p], first[p+1]) and gives the sums of the tree's maximal nodes in
/// that range, its "parts". They lie in its input one after another, each `count` elements,
/// `stride` elements apart.
struct Leaves {
  int replicas = 0;             ///< 0: not used; a rank is a leaf
  std::vector<int> first = {};  ///< ranks + 1 entries
  size_t stride = 0;
  /// Returns whether the tree over the parts is the tree over the ranks: each rank gives one part,
  /// and all have one size. Then any algorithm does it.
  bool one_a_rank() const;
  /// Returns how many parts rank p gives.
  size_t parts_of(int p) const;
};

/// One rank's request within a group. All ranks must agree on everything but `rank`, `sends` and
/// `receives`.
///   broadcast        input: count elements, read at the root; output: count elements everywhere
///   reduce           input: count elements; output: count elements, written at the root
///   allreduce        input, output: count elements
///   reduce_scatter   input: count elements; output: parts[rank].count elements
///   allgather        input: parts[rank].count elements; output: count elements
///   gather           as allgather, with an output at the root only
///   scatter          input: count elements, read at the root; output: parts[rank].count elements
///   all_to_all       input: sends[q] goes to rank q; output: receives[q] comes from rank q
/// Ranks with equal entries of `node_of` see each other's memory. Input and output of broadcast,
/// reduce, allreduce and reduce_scatter may begin together; in reduce_scatter, allgather, gather
/// and scatter the short one may be parts[rank] of the long one. Otherwise they must not overlap.
struct Task {
  Collective kind = Collective::barrier;
  int rank = 0;
  int ranks = 1;
  int root = 0;
  size_t count = 0;
  std::vector<Slice> parts = {};  ///< one for each rank, in rank order, without gaps; allreduce:
                                  ///< may be empty, then balanced
  bool gaps = false;  ///< reduce_scatter, allgather: parts need not touch, nor reach to the end:
                      ///< this is a piece of a larger task. Only some algorithms do it
  std::vector<Slice> sends = {}, receives = {};  ///< all_to_all only
  bool wide = false;     ///< the accumulator is a wider type: sums may not be kept in the output
  bool mean = false;     ///< the sum is divided by the number of ranks (or whatever the executor
                         ///< divides by) at the end
  Leaves leaves = {};    ///< reduce_scatter, allreduce
  bool ordered = false;  ///< sums are in the order of comm/schedule/tree.h, over ranks or replicas
  bool equal_blocks = false;  ///< all_to_all: sends and receives of every rank are `ranks` blocks,
                              ///< each count / ranks elements, one after another
  /// allreduce, allgather: the output of all ranks of a node is one piece of memory. Each rank
  /// writes its part of it (allgather: has written it), and the data that it receives from other
  /// nodes; other ranks of its node only get a signal. Each node has its own output.
  bool shared_output = false;
  /// The node of each rank, numbered from 0 in the order in which they first appear. Empty: not
  /// known, or all on one node.
  std::vector<int> node_of = {};

  Slice part() const { return part(rank); }
  Slice part(int p) const { return parts[static_cast<size_t>(p)]; }
  Slice sent_to(int q) const { return sends[static_cast<size_t>(q)]; }
  Slice received_from(int q) const { return receives[static_cast<size_t>(q)]; }
};

/// Returns a task with balanced parts.
Task balanced_task(Collective kind, int rank, int ranks, size_t count);

/// Returns whether the task's rank needs data from every other rank: then it cannot complete the
/// task before every other has begun it.
bool needs_all(const Task& task);

/// Returns the indices of two slices that have a common element, if there are any.
std::optional<std::array<size_t, 2>> overlapping(std::span<const Slice> slices);

/// Returns whether two blocks of memory have a common byte.
bool overlap(std::span<const std::byte> a, std::span<const std::byte> b);

/// Returns how many nodes a table such as Task::node_of has; 1 for an empty one.
int count_nodes(std::span<const int> node_of);

/// Says which of the memories of a schedule a block lies in.
enum class Space : uint8_t { input, output, staging, accumulator };

struct Block {
  Space space = Space::input;
  Slice slice;
  size_t count() const { return slice.count; }
};
inline Block input(Slice slice) { return {Space::input, slice}; }
inline Block output(Slice slice) { return {Space::output, slice}; }
inline Block staging(Slice slice) { return {Space::staging, slice}; }
inline Block accumulator(Slice slice) { return {Space::accumulator, slice}; }

/// A block to or from a peer.
struct Message {
  int peer = 0;
  Block block;
};

/// Sets `to` = a, `to` = a (op) b, or `to` = finished a (divided for a mean, rounded to the
/// collective's type). Blocks have equal counts; `to` may be `a` or `b` itself, but must not
/// overlap them otherwise. A copy between equal addresses costs nothing.
struct LocalStep {
  enum class Kind : uint8_t { copy, reduce, finish };
  Kind kind = Kind::copy;
  Block to;
  Block a;
  Block b;
};

struct Round {
  std::vector<Message> receives;
  std::vector<Message> sends;
  std::vector<LocalStep> steps;
  bool empty() const { return receives.empty() && sends.empty() && steps.empty(); }
};

struct Schedule {
  Collective kind = Collective::barrier;
  std::string algorithm;
  int rank = 0;
  int ranks = 1;
  size_t staging = 0;      ///< elements needed
  size_t accumulator = 0;  ///< elements needed
  bool needs_all = false;  ///< see above
  std::vector<Round> rounds;
};

/// Prints each step on a line: "round 2: send output[0..127] to 3". For --print and for tests.
std::string to_string(const Schedule& schedule);

/// Builds a schedule, for algorithms. Both sides know which blocks are empty, and leave them out.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Task& task, std::string algorithm);

  /// Begins a round. Takes back an empty round before it.
  void round();
  void send(int peer, Block block);
  void receive(int peer, Block block);
  /// signal() sends a message for its arrival alone; await() receives it.
  void signal(int peer) { last().sends.push_back({peer, {}}); }
  void await(int peer) { last().receives.push_back({peer, {}}); }
  void copy(Block to, Block from);
  void reduce(Block to, Block a, Block b);
  /// Ends a sum that lies in `from`. Does nothing where this is the output and needs no change.
  void finish(Block to, Block from);

  Slice take_staging(size_t count);
  Slice take_accumulator(size_t count);
  Block staging_for(size_t count) { return staging(take_staging(count)); }
  Block accumulator_for(size_t count) { return accumulator(take_accumulator(count)); }
  /// Returns where the sum that ends in `to` may be kept: there, or in an accumulator when that is
  /// a wider type.
  Block sum_for(Block to) { return wide_ ? accumulator_for(to.count()) : to; }

  /// Appends the rounds of a schedule among some of the ranks: its rank r is `ranks[r]` here, and
  /// map() translates its blocks. Its memory is the caller's: map() gives staging and accumulators
  /// a place.
  void append(const Schedule& part, const std::vector<int>& ranks,
              const std::function<Block(Block)>& map);

  Schedule build();

 private:
  Round& last();
  bool wide_;
  bool mean_;
  Schedule schedule_;
};

/// Returns `part` of `whole`; `part` is relative to `whole.slice.begin`.
inline Block within(Block whole, Slice part) {
  return {whole.space, {whole.slice.begin + part.begin, part.count}};
}

}  // namespace tutti::comm
