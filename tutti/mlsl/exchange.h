#pragma once
// Exchanges: what a program starts now and waits for later.

#include <memory>

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
  /// Returns when complete; whatever else is in flight in any group moves on meanwhile. Throws CommError.
  void wait();
  int priority() const { return priority_; }
  virtual comm::Pending pending() const = 0;  ///< for the message of a wait that fails

 protected:
  explicit Exchange(Group& group) : group_(group) {}
  Group& group() const { return group_; }
  /// From here on in flight, with a priority that follows from the number of bytes. To be called when not in flight.
  void enter(size_t bytes);
  virtual bool advance() = 0;  ///< true when complete; does not block

 private:
  Group& group_;
  int priority_ = 0;
  bool in_flight_ = false;
};

/// A planned collective on fixed buffers.
class Planned : public Exchange {
 public:
  /// Collective over the group. Buffers as in comm/collective.h.
  Planned(Group& group, const comm::CollectiveSpec& spec);
  /// Waits for an earlier start, if that is not complete.
  void start();
  /// Of the long vector.
  size_t bytes() const { return bytes_; }
  comm::Pending pending() const override { return operation_->pending(); }

 protected:
  explicit Planned(Group& group) : Exchange(group) {}
  void plan(const comm::CollectiveSpec& spec);
  bool advance() override { return operation_->test(); }

 private:
  std::unique_ptr<comm::CollectiveOperation> operation_;
  size_t bytes_ = 0;
};

/// A planned collective on memory of its own, which the group's ranks of this node see. What a program gives is copied in at the start, and
/// out afterwards: a plan is collective, and whether a program's buffer is the one of last time is known to its own rank only.
class Staged final : public Planned {
 public:
  /// Collective over the group. spec.input and spec.output are not looked at.
  Staged(Group& group, comm::CollectiveSpec spec);
  /// Copies what this rank gives (nothing for null: it lies in input() already), and starts.
  void start(const void* input);
  /// Copies what this rank has got. Null: nothing. After completion.
  void deliver(void* output) const;
  std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }

 private:
  std::unique_ptr<comm::Window> window_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  size_t input_bytes_ = 0;
  size_t output_bytes_ = 0;
};

}  // namespace tutti::mlsl
