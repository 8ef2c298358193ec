#pragma once
// ControlMessages: barrier, broadcast, allgather and combine of a group of processes, over its
// wire, in a binomial tree (comm/control/control_tree.h).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/control/control.h"
#include "tutti/comm/control/control_tree.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// Serves all ranks of `wire`. They call the same operations in the same order; a rank that finds a
/// difference throws CommError. Not thread-safe.
class ControlMessages {
 public:
  /// `communicator` waits and names ranks. `members`: the communicator's rank for each rank of the
  /// wire; empty: the same ranks.
  ControlMessages(Communicator& communicator, Wire& wire, std::vector<int> members = {});

  /// Fills `all` with `mine` of rank 0, of rank 1, ...
  void allgather(Control kind, std::span<const std::byte> mine, std::span<std::byte> all);
  void combine(std::span<std::byte> value, const Communicator::Fold& fold);
  void broadcast(std::span<std::byte> data, int root);
  /// Does an allgather() of plain values.
  template <class T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<size_t>(wire_.size()));
    allgather(Control::allgather, std::as_bytes(std::span(&mine, 1)),
              std::as_writable_bytes(std::span(all)));
    return all;
  }

 private:
  struct Header;
  struct Arrivals;
  int rank() const { return wire_.rank(); }
  int size() const { return wire_.size(); }
  int member(int rank) const {
    return members_.empty() ? rank : members_[static_cast<size_t>(rank)];
  }
  Arrivals from_children(const Header& mine, const ControlTree& tree);
  void to_parent(const Header& mine, const ControlTree& tree, std::span<std::byte> payload);
  void wait_for_peers(Wire::Messages& messages, const std::string& what,
                      const std::vector<int>& peers, double grace);
  double grace_for_answer() const;
  [[noreturn]] void report_difference(const Header& mine, int peer, const Header& theirs);
  void down_tree(const char* what, const Header& mine, std::span<std::byte> data, int root);
  size_t relay(const char* what, std::span<std::byte> room, size_t bytes, int root);

  Communicator& communicator_;
  Wire& wire_;
  std::vector<int> members_;
  uint64_t sequence_ = 0;
};

}  // namespace tutti::comm
