#pragma once
// Exchanges on a program's buffers, which may be others at every start, and may overlap.

#include <memory>
#include <optional>
#include <vector>

#include "tutti/comm/run/block_exchange.h"
#include "tutti/mlsl/group.h"

namespace tutti::mlsl {

struct InputAndOutput {
  const void* input = nullptr;
  void* output = nullptr;
};

/// What is read and what is written, in bytes.
struct Bytes {
  size_t input = 0;
  size_t output = 0;
};

/// The input itself, or a copy of it in `copy` where a rank of comm/ would write what it still has
/// to read. `in_place`: where in the output the input may lie.
const void* input_apart(const InputAndOutput& buffers, const Bytes& bytes,
                        std::optional<size_t> in_place, std::vector<std::byte>& copy);

/// A planned collective. Not thread-safe. Destroyed before its group; abandoned when in flight
/// then.
class Planned {
 public:
  /// Collective over the group. A rebindable spec of comm/run/collective.h.
  Planned(Group& group, comm::CollectiveSpec spec);
  /// Waits for an earlier start, if that is not complete. The buffers may be the same where MPI has
  /// an MPI_IN_PLACE for the collective; where they overlap otherwise the input is copied first.
  void start(const InputAndOutput& buffers);
  /// Started, tested and waited for.
  comm::Operation& operation() const { return *operation_; }
  /// Of the long vector.
  size_t bytes() const { return bytes_; }

 private:
  Job& job_;
  std::unique_ptr<comm::CollectiveOperation> operation_;
  size_t bytes_;
  Bytes extent_;
  std::optional<size_t> in_place_;
  std::vector<std::byte> input_copy_;
};

/// An all-to-all with counts of its own, started by its constructor and used once.
class Unplanned {
 public:
  /// The spec's buffers may overlap: then the input is copied.
  Unplanned(Group& group, comm::BlockExchangeSpec spec);
  comm::Operation& operation() const { return *operation_; }

 private:
  std::vector<std::byte> input_copy_;
  std::unique_ptr<comm::BlockExchange> operation_;
};

}  // namespace tutti::mlsl
