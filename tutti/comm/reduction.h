#pragma once
// Reduction: the sum over all replicas of one piece of the gradient, planned once and started every step. The sum is taken in
// the order of comm/tree.h, so its bits do not depend on the number of ranks or on the algorithm.
//
// Life of the memory, the same for every algorithm:
//   parts   may be written while the reduction is not in flight: before start(), and again once test() or wait() reported completion
//           (then every rank has finished reading them). They are read in place; nothing copies them before they are sent.
//   result  is valid from completion until this rank's next start(). A rank that has called start() again has given it up.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/tree.h"
#include "tutti/comm/window.h"

namespace tutti::comm {

class Communicator;

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

/// What an unfinished operation waits for; becomes the message of the CommError.
struct Pending {
  std::string operation;     ///< "reduction 'bucket 3'"
  uint64_t sequence = 0;     ///< how often the operation was started, this time included
  std::vector<int> arrived;  ///< ranks that have done their share
  std::vector<int> missing;  ///< ranks that have not
};

/// Not thread-safe: a communicator and all its reductions belong to one thread at a time.
class Reduction {
 public:
  virtual ~Reduction();
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// My parts are complete. Never blocks. All ranks start the same reductions; the order may differ.
  void start();
  /// Makes progress and says whether the sum is there. Never blocks; true when not in flight.
  bool test();
  /// Polls until the sum is there, moving every other reduction in flight forward too. Throws CommError when the communicator's
  /// time-out passes or a peer is found dead.
  void wait();
  /// The sum over all replicas, `count` floats, always the same address.
  virtual const float* result() const = 0;
  /// Payload that one run moves between ranks, as seen by this rank: bytes read from peers, or sent and received.
  virtual size_t bytes_moved() const = 0;

  const std::string& name() const { return spec_.name; }
  uint64_t sequence() const { return sequence_; }
  bool in_flight() const { return in_flight_; }

 protected:
  Reduction(Communicator& communicator, ReductionSpec spec);
  virtual void begin() = 0;                ///< publish or send; must not block
  virtual bool advance() = 0;              ///< true when complete; must not block
  virtual Pending pending() const = 0;

  Communicator& communicator() const { return communicator_; }
  const ReductionSpec& spec() const { return spec_; }
  /// The slice of the bucket that `rank` sums: balanced, its bounds on cache lines. In floats.
  Range slice(int rank) const;

 private:
  Communicator& communicator_;
  ReductionSpec spec_;
  uint64_t sequence_ = 0;
  bool in_flight_ = false;
};

}  // namespace tutti::comm
