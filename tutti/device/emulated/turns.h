#pragma once
// Streams take turns: one runs until it waits, as late as the others' events allow.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/device/emulated/chance.h"
#include "tutti/device/emulated/work.h"

namespace tutti::device {

/// Chooses whose work is next. Queues have priorities that chance decides and seldom changes, so
/// that one may run far ahead of the others: work that does not wait for what it needs shows.
class Turns {
 public:
  explicit Turns(Chance& chance) : chance_(chance) {}

  std::shared_ptr<Queue> add(std::string_view name);
  /// Takes the next kernel, copy, fill or host work from its queue. Returns nothing if an event
  /// happened in its place.
  std::optional<Work> next();
  /// Returns how much each stream has left to do, for an error's text.
  std::string to_string() const;

 private:
  Queue& choose();
  void replay(const std::shared_ptr<const RecordedWork>& recorded, Queue& queue);

  Chance& chance_;
  std::vector<std::shared_ptr<Queue>> queues_;
};

}  // namespace tutti::device
