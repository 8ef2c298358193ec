#pragma once
// The planned collectives of a communicator: what a caller asks for, and the operation.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/run/operation.h"
#include "tutti/comm/run/pacer.h"
#include "tutti/comm/run/plan_error.h"
#include "tutti/comm/run/schedule_run.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

class ResultCheck;

/// A piece of a long collective has at least this many bytes for each rank: with fewer, many ranks
/// would have next to nothing of it.
constexpr size_t kLeastBytesOfARank = 4096;

/// One rank's request; comm/schedule/schedule.h defines input and output for each kind. All ranks
/// give the same kind, element, op, count, root, parts, algorithm, reproducible, leaves,
/// shared_output, chunk and priority; buffers, sends and receives are each rank's own. Buffers
/// belong to the caller, are not copied, and stay in use from start() to completion.
struct CollectiveSpec {
  std::string name = {};  ///< name in messages; empty: the name of the kind
  Collective kind = Collective::barrier;
  Element element = Element::f32;
  ReduceOp op = ReduceOp::sum;
  size_t count = 0;  ///< elements of the long vector
  int root = 0;
  std::vector<Slice> parts = {};  ///< reduce_scatter, allgather, gather, scatter; empty: equal
                                  ///< ones, count must be a multiple of size()
  /// all_to_all; both empty: count / size() elements for each rank.
  std::vector<Slice> sends = {}, receives = {};
  const void* input = nullptr;  ///< broadcast, reduce, allreduce: null: the input is the output
  void* output = nullptr;       ///< may be null on ranks without output
  bool rebindable = false;      ///< buffers come with rebind(): `input` and `output` are not read
  std::string algorithm = {};   ///< a name in comm/algorithm; empty: schedule/selection.h chooses
  bool reproducible = false;    ///< the sum must be taken in the order of comm/schedule/tree.h
  Leaves leaves = {};           ///< reduce_scatter, allreduce: a sum over replicas (schedule.h)
  bool shared_output = false;   ///< allreduce, allgather: neighbours have one output
  /// Elements of the long vector. A larger broadcast, reduce or allreduce runs as chunks one after
  /// another, and lets other operations pass; so does a reduce_scatter or allgather of up to 32
  /// ranks by two_level or pairwise that is not checked. Other collectives run in one piece. 0: one
  /// piece, except for long vectors between nodes.
  size_t chunk = 0;
  int priority = 0;
};

/// Numbers of elements that input and output of `task` have on its rank.
struct Extent {
  size_t input = 0;
  size_t output = 0;
};
Extent extent_of(const Task& task);
/// Throws PlanError where a buffer that `task` needs is null, or where the two overlap in a way
/// that comm/schedule/schedule.h does not allow. `what` begins the message.
void check_buffers(const std::string& what, const Task& task, size_t element_bytes,
                   const void* input, const void* output);

/// A planned collective. Callers use Communicator::plan, which makes the operation, asks whether
/// all ranks could, and opens it.
class CollectiveOperation final : public Operation {
 public:
  /// Makes schedules, their memory and their channels. Not collective. Throws CommError when there
  /// is no memory.
  CollectiveOperation(Communicator& communicator, const CollectiveSpec& spec, const Task& task,
                      const std::string& algorithm);
  ~CollectiveOperation() override;

  const std::string& algorithm() const { return runs_.front()->schedule().algorithm; }
  /// Returns the schedule of the first chunk.
  const Schedule& schedule() const { return runs_.front()->schedule(); }
  size_t chunks() const { return runs_.size(); }
  /// Returns the payload in bytes that this rank receives in each run.
  size_t bytes_received() const;
  /// Sets the buffers of later starts of a rebindable operation, as in CollectiveSpec; needed
  /// before the first start. Not collective, so that buffers may move on some ranks and not on
  /// others. Not while in flight. Costs nothing when the buffers are the same as last time. Throws
  /// PlanError where one is missing.
  void rebind(const void* input, void* output);

  // An operation that is made of collectives runs them itself, as parts of its own begin(),
  // advance() and describe(), instead of starting them.
  void begin() override;
  bool advance() override;
  Pending describe() const override;

 private:
  void begin(size_t chunk);
  bool advance(size_t chunk);
  void begin_chunks(size_t leaving, size_t were_leaving);
  void expect_chunks();

  std::byte* input_of(size_t chunk) const;
  std::byte* output_of(size_t chunk) const;
  void set_output_aside();
  bool sums_would_cover_input() const;

  Task task_;
  bool rebindable_;
  bool bound_;
  struct Begin {
    size_t input, output;  // bytes
  };
  std::vector<Begin> begins_;  // where each chunk's buffers begin in the whole buffers
  const void* input_;
  void* output_;
  size_t element_bytes_;
  std::unique_ptr<std::byte[]> aside_;  // replaces output_ until all chunks are complete
  std::vector<std::unique_ptr<ScheduleRun>> runs_;
  std::vector<std::unique_ptr<ResultCheck>>
      checks_;           // one for each run with Communicator::set_check(); otherwise none
  size_t first_ = 0;     // chunks before it are complete
  size_t started_ = 0;   // chunks before it have begun
  size_t expected_ = 0;  // receivers have space for the chunks before it
  Pacer::Flow flow_;     // used by an operation in chunks
};

}  // namespace tutti::comm
