#pragma once
// Exchanges: what a program starts now and waits for later.

#include <memory>
#include <optional>
#include <vector>

#include "tutti/mlsl/group.h"

namespace tutti::mlsl {

/// Not thread-safe. Destroyed before its group; what is in flight then is abandoned.
class Exchange {
 public:
  virtual ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Moves it forward. True when complete, or not in flight. Never blocks.
  bool test();
  /// The same, and moves whatever else is in flight forward too: for a program's own question.
  bool poll();
  /// Returns when complete; whatever else is in flight in any group moves on meanwhile. Throws
  /// CommError.
  void wait();
  int priority() const { return priority_; }
  virtual comm::Pending pending() const = 0;  ///< for the message of a wait that fails

 protected:
  explicit Exchange(Group& group) : group_(group) {}
  Group& group() const { return group_; }
  /// From here on in flight, with a priority that follows from the number of bytes. To be called
  /// when not in flight.
  void enter(size_t bytes);
  virtual bool advance() = 0;  ///< true when complete; does not block

 private:
  Group& group_;
  int priority_ = 0;
  bool in_flight_ = false;
};

/// A planned collective.
class Planned final : public Exchange {
 public:
  /// Collective over the group. Buffers as in comm/run/collective.h.
  Planned(Group& group, const comm::CollectiveSpec& spec);
  /// Waits for an earlier start, if that is not complete.
  void start();
  /// Of a rebindable spec: on these buffers, which the program may have moved since last time. They
  /// may be the same where MPI has an MPI_IN_PLACE for the collective; where they overlap otherwise
  /// the input is copied first.
  void start(const void* input, void* output);
  /// Of the long vector.
  size_t bytes() const { return bytes_; }
  comm::Pending pending() const override { return operation_->pending(); }

 private:
  bool advance() override { return operation_->test(); }
  const void* apart(const void* input, const void* output);

  std::unique_ptr<comm::CollectiveOperation> operation_;
  size_t bytes_;
  comm::Extent extent_;             // in bytes
  std::optional<size_t> in_place_;  // where in the output the input may lie
  std::vector<std::byte> input_copy_;
};

}  // namespace tutti::mlsl
