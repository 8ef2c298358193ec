#pragma once
// The data that a collective is measured on: its task with equal parts, its buffers in windows, and
// the values that owners write.

#include <functional>
#include <memory>
#include <vector>

#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/communicator.h"

namespace tutti::cli {

/// Collective in construction and destruction. Not thread-safe.
class CommBuffers {
 public:
  /// Allocates about `bytes` of the long vector: rounded down to whole elements, and to a
  /// multiple of the ranks where the collective deals out parts. A barrier has none. shared_output:
  /// all ranks have one output, rank 0's (an allreduce of ranks that see each other's memory, as in
  /// training); throws ConfigError where that is impossible.
  CommBuffers(comm::Communicator& communicator, comm::Collective kind, comm::Element element,
              comm::ReduceOp op, size_t bytes, bool shared_output = false);

  /// Returns the specification with these buffers and no named algorithm. A broadcast has one
  /// buffer, as in MPI.
  const comm::CollectiveSpec& spec() const { return spec_; }
  /// Returns this rank's task, as Communicator::plan makes it.
  const comm::Task& task() const { return task_; }
  size_t bytes() const { return spec_.count * comm::size_of(spec_.element); }
  std::byte* input() const { return input_->data(); }
  std::byte* output() const { return spec_.shared_output ? output_->peer(0) : output_->data(); }
  /// Returns this rank's output for peers, which do not share outputs.
  std::byte* own_output() const { return output_->data(); }

  /// Writes this rank's input again.
  void rewrite() const;
  /// Runs `call` on other values (a function of `seed`), over outputs that are all wrong before,
  /// and compares every element of every rank (in own_output() if `own` is set) with plain
  /// arithmetic. Returns the number of wrong elements, over all ranks. Collective.
  size_t count_wrong(const std::function<void()>& call, uint64_t seed, bool own = false);

 private:
  std::byte* source() const {
    return spec_.kind == comm::Collective::broadcast ? output() : input();
  }
  comm::Communicator& communicator_;
  comm::CollectiveSpec spec_;
  comm::Task task_;
  comm::Extent extent_;
  std::unique_ptr<comm::Window> input_, output_;
  std::vector<std::byte> values_;
};

}  // namespace tutti::cli
