#pragma once
// CompressedReduction: the sum over replicas of a bucket, with fewer bytes between ranks. A rank
// adds up its own parts, adds the residual that it did not send before, encodes, exchanges with
// planned collectives, and decodes; compression.h lists the methods, the files beside this one
// implement them. Every rank gets the same bits.
//
// It is not the sum of comm/schedule/tree.h. A rank encodes its own sum, so with more replicas than
// ranks the result depends on the number of ranks, and so do the weights. "The same bits on any
// number of ranks" holds for dense reductions only; the same number of ranks, nodes and the same
// state give the same bits again.
//
// Memory is the caller's. The parts may be written while the reduction is not in flight. The result
// is valid from completion until the next start(), and is separate on each rank: no rank may write
// another rank's result. The state belongs in the checkpoint: zeros at the start of a training,
// or the result of restore_state(). Several reductions of one bucket may share one state, and one
// result, if only one of them is in flight: a dense sum and compressed ones of different densities,
// from which the caller starts the right one for the step. Residuals wait meanwhile;
// release_residuals() puts them into the gradient of a last dense step. They may also share their
// scratch memory, which grows with the number of ranks where each rank receives from all others.
//
// The first encoding is done in start(), everything else by the thread that moves the operation
// forward (comm/run/progress.h). Nothing blocks.

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tutti/comm/compress/compression.h"
#include "tutti/comm/compress/node_groups.h"
#include "tutti/comm/compress/report.h"
#include "tutti/comm/compress/state.h"
#include "tutti/comm/run/staged_operation.h"

namespace tutti::comm {

/// Floats [begin, begin + rows * cols) of the bucket, treated as a matrix (powersgd).
struct MatrixBlock {
  size_t begin = 0;
  size_t rows = 0;
  size_t cols = 0;
  size_t end() const { return begin + rows * cols; }
  bool operator==(const MatrixBlock&) const = default;
};

/// One rank's request. All ranks give the same name, count, compression and matrices; they may have
/// different numbers of parts.
struct CompressedReductionSpec {
  std::string name;  ///< for messages, for example "bucket 3"
  size_t count = 0;  ///< floats
  CompressionSpec compression;
  std::vector<const float*> parts =
      {};                   ///< count floats each, at least one: their sum is this rank's gradient
  float* result = nullptr;  ///< count floats; does not overlap the parts
  std::vector<MatrixBlock> matrices =
      {};  ///< powersgd: in order, without overlaps; the rest of the bucket, and matrices that do
           ///< not get smaller, travel dense. Empty: the whole bucket as one matrix, nearly square
  const NodeGroups* groups = nullptr;  ///< hitopk: the communicator's; outlives the reduction
  std::span<float> state = {};         ///< state_layout(...).floats; outlives the reduction
  std::span<std::byte> scratch = {};   ///< scratch_bytes(...) or more; outlives the reduction.
                                       ///< Empty: memory of its own
};

class CompressedReduction : public StagedOperation {
 public:
  /// Returns the payload in bytes that this rank receives in one run.
  size_t bytes_received() const { return bytes_received_; }

  /// Sets the number of the training step, for every later start(): topk uses it to choose among
  /// equal magnitudes. A resumed run must set the same numbers.
  void set_step(uint64_t step) { step_ = step; }
  /// Returns the report over complete runs. Not while in flight.
  const CompressionReport& report() const { return report_; }
  void reset_report() { report_ = {}; }
  /// Returns the bytes of scratch memory of its own.
  size_t own_bytes() const { return own_scratch_.size(); }

 protected:
  CompressedReduction(Communicator& communicator, const CompressedReductionSpec& spec);

  // Does the local work before exchange number `stage` and returns that exchange; null when the
  // result is there. Must not block. Its time is measured.
  virtual Exchange* work(int stage) = 0;

  // Collective, in constructors. `what`: for messages; the compression is added, so that ranks with
  // different ones get an error.
  Exchange plan(Communicator& group, CollectiveSpec collective, const char* what,
                std::vector<int> members = {});
  void count_loss(const Loss& loss);

  size_t count() const { return count_; }
  std::span<const float* const> parts() const { return parts_; }
  std::span<float> sum() const { return {result_, count_}; }
  // Returns a piece of the state, by its place in the layout.
  std::span<float> piece(size_t index) const;
  // Returns scratch_bytes() of memory, aligned for floats.
  std::span<std::byte> scratch() const { return scratch_; }
  uint64_t step() const { return step_; }
  // Returns an object for work in which waiting threads take part. No bit may depend on it.
  SharedWork& shared() { return communicator().work(); }

 private:
  Exchange* next(int stage) final;
  std::string description() const final;

  std::string bucket_;
  std::string method_;
  size_t count_;
  std::vector<const float*> parts_;
  float* result_;
  StateLayout layout_;
  std::span<float> state_;
  std::vector<std::byte> own_scratch_;
  std::span<std::byte> scratch_;
  size_t bytes_received_ = 0;
  uint64_t step_ = 0;
  std::thread::id starter_;
  double exchange_began_ = 0;
  CompressionReport report_;
};

/// Returns the layout of the state that the reduction keeps on this rank. spec.state is not read.
/// Throws ConfigError for method none, and for matrices that overlap.
StateLayout state_layout(const Communicator& communicator, const CompressedReductionSpec& spec);

/// Returns the bytes that it needs between start() and completion, beside state and result: for the
/// ranks' chosen elements (topk, hitopk). spec.scratch is not read.
size_t scratch_bytes(const Communicator& communicator, const CompressedReductionSpec& spec);

/// Plans a reduction. Collective. Throws CommError when the ranks disagree on the data or the
/// method, ConfigError as state_layout() does.
std::unique_ptr<CompressedReduction> plan_compressed(Communicator& communicator,
                                                     const CompressedReductionSpec& spec);

}  // namespace tutti::comm
