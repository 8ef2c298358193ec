#pragma once
// Communicator: a group of ranks that exchange bytes. barrier, broadcast, allgather and sum are for control values, at any time and without a
// plan; what moves data is planned. Implementations: comm/inproc (threads of one process, for tests) and comm/mpi. Every call but abort() and the plain questions is collective: all ranks call the same operations in the same order.
//
// No wait without a time-out: when it passes, or when a process of this node that has to contribute is found dead (looked at about
// twice a second), CommError names the operation, its sequence number, who has arrived, who has not, since when and where.
// After a CommError the communicator is of no further use; the caller ends the job with abort().

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tutti/comm/collective.h"
#include "tutti/comm/progress.h"
#include "tutti/comm/selection.h"
#include "tutti/comm/shaped_channel.h"
#include "tutti/comm/window.h"

namespace tutti::comm {

/// Not thread-safe: one thread at a time.
class Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& host() const { return host(rank_); }
  const std::string& host(int rank) const { return places_[static_cast<size_t>(rank)].host; }
  int node(int rank) const { return place(rank).node; }  ///< ranks with equal numbers are on one node
  int local_rank() const { return local_rank_; }  ///< among the ranks of this node, in rank order
  int local_size() const { return local_size_; }
  bool one_node() const { return local_size_ == size_; }
  std::string who() const;  ///< "rank 2/4 on n03": begins the message of every CommError of a wait
  virtual std::string transport() const = 0;  ///< "threads", "shared memory", "MPI": for the log

  void barrier();
  /// `data` of `root` to everyone; sizes must agree.
  void broadcast(std::span<std::byte> data, int root);
  /// all = mine of rank 0, of rank 1, ...; all.size() = size() * mine.size(), the same on every rank.
  void allgather(std::span<const std::byte> mine, std::span<std::byte> all);
  /// values[i] = sum over ranks, in the order of tree(0, size()). For a few values: costs an allgather.
  void sum(std::span<double> values);

  /// The same for plain values.
  template <class T>
  void broadcast_value(T& value, int root) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
  }
  template <class T>
  std::vector<T> allgather_value(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<size_t>(size_));
    allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }

  /// `bytes` of zeroed memory for each rank (each may ask for its own size), shared where all ranks are on one node.
  virtual std::unique_ptr<Window> allocate(size_t bytes) = 0;
  /// Plans a collective, to be started as often as wanted. Throws CommError when the ranks disagree on what is asked for, when the buffers do
  /// not fit, or when no algorithm does it.
  std::unique_ptr<CollectiveOperation> plan(const CollectiveSpec& spec);
  /// Which algorithm plan() takes where the spec names none. The same on every rank.
  void set_selection(Selection selection) { selection_ = std::move(selection); }

  /// The ranks with equal `color`, ordered by `key` and then by rank. Lives on its own, but not longer than what this communicator lives on
  /// (MpiSession; for threads, run_ranks).
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  void set_timeout(double seconds) { timeout_ = seconds; }  ///< of every later wait; default 60
  double timeout() const { return timeout_; }

  /// Ends the whole job with this exit code after printing `rank r/n on host: message` on stderr. Among threads: makes every other rank's
  /// wait throw, and throws.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;

  /// The messages of one operation, for comm/schedule_run.h. Collective.
  std::unique_ptr<Channel> open_channel(std::vector<RoundOfMessages> rounds);
  /// Later plans run as over a link of this shape; all ranks must be on one node. Communicators split from this one afterwards share the link.
  void set_shape(const LinkShape& shape) { link_ = std::make_shared<ShapedLink>(shape); }
  bool shaped() const { return link_ != nullptr; }
  /// Whether an operation of a higher priority is in flight.
  bool more_urgent_than(const Operation& operation) const { return progress_->more_urgent_than(operation); }

  /// Who moves operations forward from now on; without this call, whoever polls and waits. Communicators split afterwards share it. Throws
  /// CommError when it has threads and progress_refusal() says why it cannot. Nothing may be in flight.
  void set_progress(std::shared_ptr<Progress> progress);
  /// Why no other thread may move operations forward; empty when it may.
  virtual std::string progress_refusal() const { return {}; }
  /// For between kernels: moves every operation in flight one step forward, unless threads are doing that. Never blocks.
  void progress() {
    if (progress_->threads() == 0) progress_->pass();
  }
  /// Polls until done(), moving operations forward; `pending` describes the wait when it fails. The loop behind every wait of comm/.
  /// `grace`: seconds added to the time-out, for waits whose cause another rank can explain better.
  void wait_for(const std::function<bool()>& done, const std::function<Pending()>& pending, double grace = 0);

 protected:
  struct Place {
    std::string host;
    int node = 0;  ///< ranks with equal numbers are on one node
  };
  /// `message`, beginning with who() exactly once.
  std::string signed_message(const std::string& message) const;
  Communicator(int rank, int size) : rank_(rank), size_(size), places_(static_cast<size_t>(size)) {}
  /// To be called once by the constructor of an implementation.
  void set_places(std::vector<Place> places);
  const Place& place(int rank) const { return places_[static_cast<size_t>(rank)]; }

  /// The control messages, which need no plan.
  enum class Control : uint32_t { barrier = 1, broadcast, allgather };
  static const char* name_of(Control kind);
  /// One allgather; a barrier is one of 0 bytes. Must report ranks that call something else.
  virtual void gather_all(Control kind, std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void spread(std::span<std::byte> data, int root) = 0;
  virtual std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds) = 0;
  /// For implementations of split(): time-out, selection, link and progress are this communicator's.
  void inherit(Communicator& part) const;
  /// Whether one of `ranks` is known to be gone, and how; empty if none. Called about twice a second while waiting.
  virtual std::string lost_peer(std::span<const int> ranks) const = 0;

 private:
  friend class Operation;
  Task task_of(const CollectiveSpec& spec) const;
  /// Throws CommError where a rank's value differs from rank 0's.
  void agree(uint64_t fingerprint, const std::string& what);

  int rank_;
  int size_;
  int local_rank_ = 0;
  int local_size_ = 1;
  double timeout_ = 60;
  std::vector<Place> places_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  Selection selection_;
  std::shared_ptr<ShapedLink> link_;  // null: as fast as it goes
};

/// "0-2, 5": for messages.
std::string rank_list(std::span<const int> ranks);

}  // namespace tutti::comm
