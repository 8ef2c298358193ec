#pragma once
// Communicator: a group of ranks that exchange bytes. barrier, broadcast, allgather, combine and
// sum serve control values, at any time and without a plan; operations that move data are planned.
// Every call is collective, so that all ranks call the same operations in the same order, unless
// its comment says "Not collective"; queries and settings are not collective. Implementations:
// comm/transport/process_communicator.h (processes, over MPI or TCP) and comm/transport/inproc
// (threads of one process).
//
// Every wait has a time-out. When it passes, or when a process that has to contribute is found dead
// (checked a few times a second), CommError names the group, the operation, its sequence number,
// which ranks have arrived, which have not, since when and where. The rank that gives up alarms the
// others, so that each reports what it waits for. After a CommError the communicator is of no
// further use, and destroying it does not wait: the caller ends the job with abort(), or goes on
// with another communicator of the ranks that are left. After a PlanError it stays usable. Error
// messages number ranks over the whole job, also in a group that is a part of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/comm/control/control.h"
#include "tutti/comm/on_timeout.h"
#include "tutti/comm/places.h"
#include "tutti/comm/run/collective.h"
#include "tutti/comm/run/message.h"
#include "tutti/comm/run/planner.h"
#include "tutti/comm/run/progress.h"
#include "tutti/comm/transport/channels.h"
#include "tutti/comm/transport/shaped_channel.h"
#include "tutti/comm/transport/window.h"

namespace tutti::comm {

/// Says which part of the job a communicator is.
struct Group {
  std::string name = "global";
  std::vector<int> job_ranks = {};  ///< the members' ranks in the job; empty: all ranks of the job
  int job_size = 0;
};

/// Not thread-safe: one thread at a time.
class Communicator : protected ChannelSource {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Returns where the ranks are.
  const Places& places() const { return places_; }
  const std::string& host() const { return host(rank_); }
  const std::string& host(int rank) const { return places_[rank].host; }
  int node(int rank) const { return places_[rank].node; }  ///< equal for ranks on one node
  bool same_node(int rank) const { return node(rank) == node(rank_); }  ///< as this rank
  int local_rank() const { return places_.local_rank(); }  ///< this rank's index on its node
  int local_size() const { return places_.local_size(); }
  bool one_node() const { return local_size() == size_; }
  /// Returns the node of each rank, as in Task::node_of.
  std::vector<int> node_of() const { return places_.numbered(&Place::node); }
  int nodes() const;  ///< number of nodes
  /// Returns the ranks that see each other's memory: on this rank's node, in its process namespace.
  const Neighbours& neighbours() const { return *places_.neighbours(); }
  /// Returns whether any ranks see each other's memory; the same on every rank.
  bool shares_memory() const { return places_.shares_memory(); }
  const std::string& name() const { return name_; }  ///< name of the group: "global", "data 0"
  /// Returns a member's rank in the whole job.
  int job_rank(int rank) const { return job_ranks_[static_cast<size_t>(rank)]; }
  std::string who() const;  ///< "rank 2/4 on n03", in the whole job: begins all errors of waits
  std::string rank_name(int rank) const;  ///< "rank 2 on n03": a member's name in messages
  std::string describe_group() const;     ///< "group 'data 0' (ranks 0, 2)"
  /// Names the transport for the log: "threads", "shared memory", "MPI", "TCP", "shared memory and
  /// MPI".
  virtual std::string transport() const = 0;

  void barrier();
  /// Copies the `data` of `root` to all ranks; sizes must agree.
  void broadcast(std::span<std::byte> data, int root);
  /// Fills `all` with `mine` of rank 0, of rank 1, ...; all.size() = size() * mine.size(), the same
  /// on every rank.
  void allgather(std::span<const std::byte> mine, std::span<std::byte> all);
  /// Combines the values of two neighbouring ranges of ranks into `mine`, that of the lower ranks.
  using Fold = std::function<void(std::byte* mine, const std::byte* theirs)>;
  static constexpr size_t kMostCombined = 4096;  ///< bytes
  /// Reduces a few bytes over all ranks: `value` becomes the fold of all ranks' values in the
  /// order of tree(0, size()), the same on every rank. Sizes must agree. Values travel up a tree
  /// and down again: at most 2 log2 P + 2 messages a rank.
  void combine(std::span<std::byte> value, const Fold& fold);
  /// Combines a few values: values[i] becomes its sum over ranks, in the order of tree(0, size()).
  void sum(std::span<double> values);

  /// Does the same for a plain value.
  template <class T>
  void broadcast_value(T& value, int root) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
  }
  /// Does the same with fold(T& mine, const T& theirs); see combine().
  template <class T, class FoldValues>
  T combine_value(T value, FoldValues fold) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMostCombined);
    combine(std::as_writable_bytes(std::span(&value, 1)),
            [&fold, value](std::byte* mine, const std::byte* theirs) {
              T a = value, b = value;  // because bytes of messages are not aligned
              std::memcpy(&a, mine, sizeof a);
              std::memcpy(&b, theirs, sizeof b);
              fold(a, static_cast<const T&>(b));
              std::memcpy(mine, &a, sizeof a);
            });
    return value;
  }
  /// Return the largest and the smallest of all ranks' values, on every rank.
  template <class T>
  T most(T value) {
    return combine_value(value, [](T& mine, const T& theirs) { mine = std::max(mine, theirs); });
  }
  template <class T>
  T least(T value) {
    return combine_value(value, [](T& mine, const T& theirs) { mine = std::min(mine, theirs); });
  }
  /// Returns a table with an entry from every rank, for facts that all ranks have to know.
  template <class T>
  std::vector<T> allgather_value(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<size_t>(size_));
    allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }

  /// Allocates `bytes` of zeroed memory for each rank (each may ask for its own size), which its
  /// neighbours see. `access` is the same on every rank. When one rank throws, all do.
  virtual std::unique_ptr<Window> allocate(size_t bytes, PeerAccess access = PeerAccess::read) = 0;
  /// Allocates `bytes` of zeroed memory that neighbours share and may all write: the first
  /// neighbour's part of the window; other parts are empty. `mine`: bytes that this rank writes, or
  /// works with most; they lie near its processor. When one rank throws, all do.
  virtual std::unique_ptr<Window> allocate_once(size_t bytes, std::span<const Slice> mine) = 0;
  /// Plans a collective, to be started as often as wanted. Throws PlanError when the ranks disagree
  /// on the request, when the buffers do not fit, or when no algorithm does it, and ConfigError for
  /// an unknown name of an algorithm; when one rank throws, all do.
  std::unique_ptr<CollectiveOperation> plan(const CollectiveSpec& spec) {
    return planner_.plan(spec);
  }
  /// Returns the planner, which holds the choice of algorithms.
  Planner& planner() { return planner_; }
  const Planner& planner() const { return planner_; }
  /// Plan one end of a message, to be started as often as wanted. Not collective. Throw PlanError
  /// for an impossible peer, tag or length.
  std::unique_ptr<MessageOperation> plan_send(const MessageSpec& spec) {
    return std::make_unique<MessageOperation>(*this, MessageOperation::Way::send, spec);
  }
  std::unique_ptr<MessageOperation> plan_receive(const MessageSpec& spec) {
    return std::make_unique<MessageOperation>(*this, MessageOperation::Way::receive, spec);
  }
  /// Return an object that sends and receives messages between two ranks, and one that receives
  /// messages of at most `room` bytes from any rank. Not collective.
  virtual std::unique_ptr<Wire::Messages> messages() = 0;
  virtual std::unique_ptr<Wire::Inbox> inbox(size_t room, int tag) = 0;
  /// Returns a communicator of the ranks with equal `color`, 0 or more, ordered by `key` and then
  /// by rank. It may outlive this communicator, but not what this one depends on (MpiSession; for
  /// threads, run_ranks). `name` is the group's in messages, "data 0"; empty: this one's name and
  /// the color.
  std::unique_ptr<Communicator> split(int color, int key, std::string name = {});

  void set_timeout(double seconds) { timeout_ = seconds; }  ///< for every later wait; default 60
  double timeout() const { return timeout_; }
  void set_on_timeout(OnTimeout action) { on_timeout_ = action; }  ///< default abort

  /// Ends this rank's part because something has failed: alarms the other ranks, whose waits then
  /// fail, and no destructor of this communicator or of its parts waits afterwards.
  void give_up() { raise_alarm(); }
  /// Ends the whole job with this exit code after printing `rank r/n on host: message` on stderr.
  /// Among threads: makes every other rank's wait throw, and throws.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;

  /// Returns the channels of operations; also for callers that send messages of their own.
  Channels& channels() { return channels_; }
  /// Makes later plans run as over a link of this shape; all ranks must be on one node.
  /// Communicators split from this one afterwards share the link.
  void set_shape(const LinkShape& shape);
  bool shaped() const { return shaped_; }
  /// Makes later plans send a checksum with every message and compare their results on the ranks
  /// (comm/check/checked_channel.h, comm/check/result_check.h); they fail with a CommError that
  /// names the ranks.
  void set_check();
  bool checked() const { return checked_; }

  /// Sets which threads move operations forward from now on; without this call, the threads that
  /// poll and wait do. Communicators split afterwards share it. Throws CommError when `progress`
  /// has threads and progress_refusal() gives a reason against them. Nothing may be in flight.
  void set_progress(std::shared_ptr<Progress> progress);
  /// Returns why no other thread may move operations forward; empty when it may.
  virtual std::string progress_refusal() const { return {}; }
  /// Moves every operation in flight one step forward, unless progress threads do that. To be
  /// called between kernels. Never blocks.
  void progress() {
    if (progress_->threads() == 0) progress_->pass();
  }
  /// Returns what shares local work with waiting threads: folding, encoding, looking for NaNs.
  SharedWork& work() { return progress_->work(); }
  /// Polls until done(), moving operations forward; `pending` describes the wait when it fails.
  /// Every wait of comm/ runs this loop. `grace`: seconds added to the time-out, for waits whose
  /// cause another rank can explain better.
  void wait_for(const std::function<bool()>& done, const std::function<Pending()>& pending,
                double grace = 0);
  /// Returns which of `ranks` is known to be gone, and how; empty if none. Called a few times a
  /// second while waiting.
  virtual std::string lost_peer(std::span<const int> ranks) const = 0;
  /// Announces long waits, until it is called with an empty text: between two polls they sleep for
  /// a tenth of the time that they have lasted, at most 10 ms. Reports end with `because`.
  void wait_patiently(std::string because) { patience_ = std::move(because); }

 protected:
  /// Returns `message`, beginning with who() exactly once.
  std::string signed_message(const std::string& message) const;
  Communicator(int rank, int size, Group group = {});
  /// Sets places(); for the constructor of an implementation.
  void set_places(std::vector<Place> places);
  /// Does one allgather; a barrier is one of 0 bytes. Must report ranks that call something else.
  virtual void do_allgather(Control kind, std::span<const std::byte> mine,
                            std::span<std::byte> all) = 0;
  /// Does one combine() among several ranks. Must report as do_allgather() does.
  virtual void do_combine(std::span<std::byte> value, const Fold& fold) = 0;
  virtual void do_broadcast(std::span<std::byte> data, int root) = 0;
  /// Makes the communicator of `members` for split(), on every rank. `members` are ranks of this
  /// communicator in their new order, this rank among them.
  virtual std::unique_ptr<Communicator> do_split(const std::vector<int>& members, Group group) = 0;
  /// Tells all other ranks of the job that this one gives up.
  virtual void raise_alarm() {}
  /// Returns which other rank has given up; empty if none. Called as often as lost_peer().
  virtual std::string alarm() { return {}; }

 private:
  class Wait;
  friend class Operation;
  friend class BlockExchange;
  std::vector<int> job_ranks(std::span<const int> ranks) const;  ///< sorted
  std::string report(const Pending& what, const std::string& how, std::time_t since) const;

  int rank_;
  int size_;
  std::string name_;
  std::vector<int> job_ranks_;
  int job_size_;
  double timeout_ = 60;
  OnTimeout on_timeout_ = OnTimeout::abort;
  std::string patience_;
  Places places_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  Channels channels_;
  Planner planner_;
  bool shaped_ = false, checked_ = false;
  uint64_t exchanges_ = 0;  // number of BlockExchanges that this rank has started
};

/// Formats ranks as "0-2, 5", for messages.
std::string rank_list(std::span<const int> ranks);

}  // namespace tutti::comm
