#pragma once
// Session: a network of operations, whose exchanges are all planned in commit().

#include <functional>

#include "tutti/mlsl/operation.h"

namespace tutti::mlsl {

class Session final : public api::Session {
 public:
  /// `job` outlives it. `quantizer` returns the current one, or null; it is called at commit.
  Session(Job& job, std::function<const Quantizer*()> quantizer, api::PhaseType phase);

  api::PhaseType phase() const { return phase_; }
  void set_minibatch(size_t samples);
  /// Returns the minibatch. Throws ConfigError if it is not set yet.
  size_t minibatch() const;
  OperationRegInfo& create_description(api::OpType type);
  void remove_description(const OperationRegInfo* description);
  /// Adds an operation and returns its index. `distribution` may be null, and set later.
  size_t add(const OperationRegInfo& description, std::shared_ptr<Distribution> distribution);
  /// Collective if committed.
  void remove_operations();
  /// Waits for exchanges that operations have started. Call it before destruction.
  void complete();
  size_t operation_count() const { return operations_.size(); }
  Operation& operation(size_t index);
  bool committed() const { return committed_; }
  /// Collective.
  void commit();
  Statistics& statistics() { return statistics_; }

 private:
  Job& job_;
  std::function<const Quantizer*()> quantizer_;
  api::PhaseType phase_;
  size_t minibatch_ = 0;
  bool committed_ = false;
  Statistics statistics_;
  std::vector<std::unique_ptr<OperationRegInfo>> descriptions_;
  std::deque<Operation> operations_;
};

}  // namespace tutti::mlsl
