#pragma once
// SliceRanks: the ranks that share the layers of one replica (split/tensors.h), where they
// meet outside of its forward and backward pass: for norms of parameters of which each has a slice,
// and for whole tensors of files.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/plan.h"
#include "tutti/split/grid.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class SliceRanks {
 public:
  /// The communicator, of the whole job, must outlive it.
  SliceRanks(comm::Communicator& communicator, const PartGrid& grid)
      : communicator_(communicator), grid_(grid) {}

  /// Whether whole() gives this rank a whole tensor.
  bool gets_whole() const { return grid_.tensor_place() == 0; }
  /// Before norms are exchanged: those of the plan's AllReduceNorms that have slices.
  void plan_norms(const Plan& plan);
  /// Block sums of one of these, by its number in the plan: each slice's become the sum over ranks
  /// (ops/exchange.h). In between, ranks send each other one number for each slice.
  void start_norms(int exchange, std::span<const float> sums);
  bool norms_done(int exchange);
  void finish_norms(int exchange, std::span<float> sums);

  /// Collective over the ranks of a replica. On its first one the whole tensor, plain; elsewhere
  /// `mine`, as it was given.
  std::vector<float> whole(const TensorSlice& slice, std::vector<float> mine);

  /// Seconds blocked in finish_norms(), since the construction.
  double exposed_seconds() const { return exposed_; }

 private:
  /// Rows of block sums that are one parameter's.
  struct Blocks {
    size_t first, count;
  };
  struct Norms {
    size_t columns = 0;          // of a row
    std::vector<Blocks> slices;  // of parameters
    std::vector<std::vector<float>> of_rank;
    std::vector<std::unique_ptr<comm::MessageOperation>> messages;
  };
  comm::MessageSpec message(const char* name, int place, int tag, std::span<float> data) const;

  comm::Communicator& communicator_;
  const PartGrid grid_;
  std::map<int, Norms> norms_;  // by exchange
  double exposed_ = 0;
};

}  // namespace tutti
