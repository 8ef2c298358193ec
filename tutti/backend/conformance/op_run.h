#pragma once
// Runs one op through any backend the way the plan does: tiles of the batch, several threads with
// their own accumulators, free operands in the form the kernel requests. On a device: the whole
// batch, with copies of the operands in its memory. Values go in and out as doubles in row-major
// order. For tests and benchmarks.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::backend {

/// Row-major values of one operand.
using Values = std::vector<double>;

struct OpProblem {
  graph::OpPtr op;
  std::vector<graph::ValueType> in;
  std::vector<bool> in_free;        ///< as in KernelRequest; empty = none
  std::vector<bool> out_free = {};  ///< as in KernelRequest; empty = none
  std::vector<graph::ValueType> out() const { return op->infer(in); }
};

struct OpRunOptions {
  std::string layout = "plain";  ///< used for every batched operand of rank >= 3 for which the
                                 ///< backend offers it, as in the plan
  std::string kernel;            ///< name of the candidate; empty = the first that is accepted
  int64_t tile = 0;              ///< samples; 0 = the whole batch
  int threads = 1;
  StepInfo step;          ///< batch is filled in
  bool recorded = false;  ///< on a device: the work is recorded and replayed
};

class DeviceRun;
struct GuardedOperand;

class OpRun {
 public:
  /// Throws DeviceError with every candidate's refusal if the backend has no such kernel. A backend
  /// with a device must outlive it, and takes one thread and the whole batch.
  OpRun(OpProblem problem, const Backend& backend, const OpRunOptions& options);
  OpRun(OpRun&&) noexcept;
  ~OpRun();

  const std::string& kernel() const { return kernel_name_; }
  double error() const { return error_; }
  /// Names of the accepted candidates, best guess first.
  const std::vector<std::string>& accepted() const { return accepted_; }
  /// Returns whether the accepted candidate of that name is reference loops (KernelSpeed).
  bool is_slow(const std::string& kernel) const {
    return std::ranges::find(slow_, kernel) != slow_.end();
  }
  const std::vector<graph::ValueType>& out_types() const { return out_types_; }
  /// Returns the bytes of all operands in memory.
  size_t bytes() const;

  void set_in(size_t i, const Values& values);
  Values in(size_t i) const;
  Values out(size_t i) const;
  /// Sets outputs to NaN, so that values a kernel leaves unwritten are noticed.
  void spoil_outputs();
  void run();
  /// Returns which operand was written beyond its end; empty: none.
  std::string broken_guard() const;

 private:
  struct Worker;
  KernelRequest request_for(int64_t tile) const;
  void work(Worker& worker, Team& team);

  OpProblem problem_;
  std::vector<graph::ValueType> out_types_;
  OpRunOptions options_;
  KernelRequest request_;  ///< whole batch, every desc final
  std::vector<GuardedOperand> in_, out_;
  std::vector<std::unique_ptr<Worker>> workers_;  ///< none on a device
  std::unique_ptr<DeviceRun> on_device_;
  std::string kernel_name_;
  double error_ = 1;  ///< KernelCandidate::error
  std::vector<std::string> accepted_, slow_;
  graph::Walk walk_;
  int64_t batch_ = 0;
};

}  // namespace tutti::backend
