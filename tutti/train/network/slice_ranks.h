#pragma once
// SliceRanks: communication between the ranks that share the layers of one replica
// (split/tensors.h), outside of its forward and backward pass: for norms of parameters of which
// each rank has a slice, and for whole tensors in files.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/plan.h"
#include "tutti/split/grid.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class SliceRanks {
 public:
  /// The communicator covers the whole job; it must outlive this object.
  SliceRanks(comm::Communicator& communicator, const split::PartGrid& grid)
      : communicator_(communicator), grid_(grid) {}

  /// Returns whether whole() returns a whole tensor on this rank.
  bool gets_whole() const { return grid_.tensor_place() == 0; }
  /// Plans the norms of the plan's AllReduceNorms that have slices; call it before they are
  /// exchanged.
  void plan_norms(const plan::Plan& plan);
  /// Exchanges block sums of one of these norms, by its number in the plan: the block sums of each
  /// slice become the sum over ranks (ops/exchange.h). Ranks send each other one number per slice.
  void start_norms(int exchange, std::span<const float> sums);
  bool norms_done(int exchange);
  void finish_norms(int exchange, std::span<float> sums);

  /// Collective over the ranks of a replica. Returns the whole tensor, plain, on its first rank;
  /// elsewhere it returns `mine` unchanged.
  std::vector<float> whole(const graph::TensorSlice& slice, std::vector<float> mine);

  /// Returns the seconds blocked in finish_norms(), since the construction.
  double exposed_seconds() const { return exposed_; }

 private:
  /// The rows of block sums that belong to one parameter.
  struct Blocks {
    size_t first, count;
  };
  struct Norms {
    size_t columns = 0;          // length of a row
    std::vector<Blocks> slices;  // parameters with slices
    std::vector<std::vector<float>> of_rank;
    std::vector<std::unique_ptr<comm::MessageOperation>> messages;
  };
  comm::MessageSpec message(const char* name, int place, int tag, std::span<float> data) const;

  comm::Communicator& communicator_;
  const split::PartGrid grid_;
  std::map<int, Norms> norms_;  // by number of the exchange
  double exposed_ = 0;
};

}  // namespace tutti::train
