#pragma once
// Exchanges on a program's buffers, which may differ at every start, and may overlap.

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

/// Sizes of the input and the output, in bytes.
struct Bytes {
  size_t input = 0;
  size_t output = 0;
};

/// Returns the input itself, or a copy of it in `copy` if comm/ would overwrite parts that it still
/// has to read. `in_place` is the offset in the output where the input may lie.
const void* input_apart(const InputAndOutput& buffers, const Bytes& bytes,
                        std::optional<size_t> in_place, std::vector<std::byte>& copy);

/// A planned collective. Not thread-safe. It is destroyed before its group, and abandoned if it is
/// then in flight.
class Planned {
 public:
  /// Collective over the group. Takes a rebindable spec of comm/run/collective.h.
  Planned(Group& group, comm::CollectiveSpec spec);
  /// Waits for an earlier start that is not complete, then starts. The buffers may be the same if
  /// MPI has an MPI_IN_PLACE for the collective; the input is copied first if they overlap
  /// otherwise.
  void start(const InputAndOutput& buffers);
  /// Returns the operation that is started, tested and waited for.
  comm::Operation& operation() const { return *operation_; }
  /// Returns the size of the long vector.
  size_t bytes() const { return bytes_; }

 private:
  Job& job_;
  std::unique_ptr<comm::CollectiveOperation> operation_;
  size_t bytes_;
  Bytes extent_;
  std::optional<size_t> in_place_;
  std::vector<std::byte> input_copy_;
};

/// An all-to-all with counts for this use only; its constructor starts it.
class Unplanned {
 public:
  /// If the spec's buffers overlap, the input is copied.
  Unplanned(Group& group, comm::BlockExchangeSpec spec);
  comm::Operation& operation() const { return *operation_; }

 private:
  std::vector<std::byte> input_copy_;
  std::unique_ptr<comm::BlockExchange> operation_;
};

}  // namespace tutti::mlsl
