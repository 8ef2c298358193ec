#pragma once
// Reduction: the sum over all replicas of one piece of the gradient, planned once and started every step. The sum is taken in
// the order of comm/tree.h, so its bits do not depend on the number of ranks or on the algorithm.
//
// Life of the memory, the same for every algorithm:
//   parts   may be written while the reduction is not in flight: before start(), and again once test() or wait() reported completion
//           (then every rank has finished reading them). They are read in place; nothing copies them before they are sent.
//   result  is valid from completion until this rank's next start(). A rank that has called start() again has given it up.

#include <string>
#include <vector>

#include "tutti/comm/operation.h"
#include "tutti/comm/tree.h"
#include "tutti/comm/window.h"

namespace tutti::comm {

/// What all ranks must give alike (name, count, replicas, first), and what is each rank's own (window, parts, result).
struct ReductionSpec {
  std::string name;                  ///< for messages, for example "bucket 3"
  size_t count = 0;                  ///< floats
  int replicas = 1;                  ///< R
  std::vector<int> first;            ///< P + 1 entries: rank p owns replicas [first[p], first[p + 1])
  const Window* window = nullptr;    ///< from Communicator::allocate, outlives the reduction; holds the parts
  std::vector<const float*> parts;   ///< count floats each, the maximal subtrees of the own range in order, inside `window`
  float* result = nullptr;           ///< where the sum shall go, count floats; null: the reduction chooses, and copies least
};

/// An Operation: start() says that my parts are complete.
class Reduction : public Operation {
 public:
  /// The sum over all replicas, `count` floats, always the same address.
  virtual const float* result() const = 0;
  /// Payload that one run moves between ranks, as seen by this rank: bytes read from peers, or sent and received.
  virtual size_t bytes_moved() const = 0;

 protected:
  Reduction(Communicator& communicator, ReductionSpec spec);
  const ReductionSpec& spec() const { return spec_; }
  /// The slice of the bucket that `rank` sums: balanced, its bounds on cache lines. In floats.
  Range slice(int rank) const;

 private:
  ReductionSpec spec_;
};

}  // namespace tutti::comm
