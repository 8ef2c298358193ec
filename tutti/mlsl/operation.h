#pragma once
// Operations: their description, and a rank's part of them.

#include <string>
#include <vector>

#include "tutti/mlsl/activation.h"
#include "tutti/mlsl/parameter_set.h"

namespace tutti::mlsl {

class Session;

/// A value that operations copy, so it may be destroyed before them.
class OperationRegInfo final : public api::OperationRegInfo {
 public:
  /// The arguments gathered by AddInput and the other calls.
  struct Description {
    api::OpType type = api::OT_CC;
    std::string name = {};
    std::vector<ActivationInfo> inputs = {}, outputs = {};
    std::vector<ParameterInfo> parameters = {};
  };

  /// Throws ConfigError for a number that is no operation type.
  explicit OperationRegInfo(api::OpType type);
  const Description& description() const { return description_; }
  void set_name(const char* name) { description_.name = name == nullptr ? "" : name; }
  /// Each returns the index of the new entry; throws ConfigError for empty ones.
  size_t add_input(const ActivationInfo& info) { return add(description_.inputs, info); }
  size_t add_output(const ActivationInfo& info) { return add(description_.outputs, info); }
  size_t add_parameters(const ParameterInfo& info);
  /// Throws ConfigError if no rank could run the operation; `distribution` may be null.
  void validate(const Distribution* distribution) const;

 private:
  static size_t add(std::vector<ActivationInfo>& list, const ActivationInfo& info);

  Description description_;
};

class Operation final : public api::Operation {
 public:
  /// `session` outlives it.
  Operation(Session& session, size_t index, OperationRegInfo::Description description);

  /// Throws ConfigError if it is set already, or if something cannot be cut.
  void set_distribution(std::shared_ptr<Distribution> distribution);
  Distribution* distribution() const { return distribution_.get(); }
  Session& session() const { return session_; }
  const OperationRegInfo::Description& description() const { return description_; }
  /// Returns this rank's samples of the minibatch, which the session has set before. Throws
  /// ConfigError if it cannot be cut.
  comm::Slice samples() const;

  /// Connects input `mine` with output `theirs` of `previous`, or the other way round. Null:
  /// nothing is connected. Call this before the session's commit.
  void set_previous(Operation* previous, size_t mine, size_t theirs);
  void set_next(Operation* next, size_t mine, size_t theirs);

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  size_t parameter_count() const { return parameters_.size(); }
  /// These throw ConfigError for an invalid index.
  Activation& input(size_t index) { return at(inputs_, index, "input"); }
  Activation& output(size_t index) { return at(outputs_, index, "output"); }
  ParameterSet& parameters(size_t index) { return at(parameters_, index, "parameter set"); }
  void check_distribution(const char* why) const;

  /// Plans all exchanges of the operation. Collective.
  void commit(const Quantizer* quantizer, Statistics& statistics);
  void isolate();
  /// Waits for exchanges that it has started.
  void complete();

 private:
  template <class T>
  T& at(std::deque<T>& list, size_t index, const char* what) {
    demand(index < list.size(), "operation '{}' has no {} {}", description_.name, what, index);
    return list[index];
  }

  Session& session_;
  size_t index_;
  OperationRegInfo::Description description_;
  std::shared_ptr<Distribution> distribution_;
  std::deque<Activation> inputs_, outputs_;  // deques keep addresses
  std::deque<ParameterSet> parameters_;
};

}  // namespace tutti::mlsl
