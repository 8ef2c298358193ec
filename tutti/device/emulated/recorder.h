#pragma once
// Work that is noted in place of being done.

#include <cstddef>
#include <memory>
#include <vector>

#include "tutti/device/emulated/work.h"

namespace tutti::device {

/// One recording while it is made: the stream that began it and those that have joined it, by
/// waiting for an event of it.
class Recorder {
 public:
  /// `number` tells its moments from those of other recordings.
  Recorder(int64_t number, std::shared_ptr<Queue> origin);

  int64_t number() const { return number_; }
  bool began_on(const std::shared_ptr<Queue>& queue) const;
  bool has(const std::shared_ptr<Queue>& queue) const;
  /// Notes work of a stream that the recording has.
  void put(const std::shared_ptr<Queue>& queue, Work work);
  std::shared_ptr<Moment> record(const std::shared_ptr<Queue>& queue);
  /// Notes that a stream waits for a moment of this recording, which it may join by that.
  void wait(const std::shared_ptr<Queue>& queue, const std::shared_ptr<Moment>& moment);
  /// Returns all work. Throws DeviceError if the first stream has not waited for all of it.
  std::shared_ptr<const RecordedWork> end() const;

 private:
  struct Branch {
    std::shared_ptr<Queue> queue;
    std::vector<Work> work;
    size_t pieces = 0;          // pieces of work, besides records and waits
    std::vector<size_t> after;  // pieces of each branch that come before what is noted next
  };
  Branch* find(const std::shared_ptr<Queue>& queue);
  Branch& branch_of(const std::shared_ptr<Queue>& queue);

  int64_t number_;
  std::vector<Branch> branches_;
};

}  // namespace tutti::device
