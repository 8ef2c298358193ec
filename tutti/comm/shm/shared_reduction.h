#pragma once
// The reduction among ranks that see each other's memory: threads of one process, or processes of one node.
//
// Direct in-place reduce-scatter. Each rank owns one slice of the bucket.
//   1  start(): publish `arrived = k` (k counts the starts).
//   2  once all ranks have arrived at k: evaluate the tree over the own slice, reading every rank's parts in place and writing
//      into the node's result; publish `finished = k`.
//   3  complete once all ranks have finished k. The result lies in shared memory: there is no allgather.
// Steps: 2 flags. Bytes per rank: reads (parts of others) * S/P from peers' memory, writes S/P; S = bucket, P = ranks.
// No kernel calls; a flag has its own cache lines and one writer.
//
// Why the next step may reuse the memory although ranks drift apart:
//   - A rank overwrites its parts only after it saw completion of k, that is finished >= k from every rank: nobody still reads the
//     parts of k. (finished is stored with release after the last read, and loaded with acquire.)
//   - A rank writes its slice of the result for k+1 only after it saw arrived >= k+1 from every rank, and a rank calls start() for
//     k+1 only when it no longer reads the result of k (the contract in comm/reduction.h). So nobody still reads the old result.
//   - Counters only grow, and no rank can be more than one start ahead: to start k+2 it must have seen finished >= k+1 from all.
// Hence no double buffering.

#include <memory>
#include <vector>

#include "tutti/comm/reduction.h"
#include "tutti/comm/tree.h"

namespace tutti::comm {

class SharedReduction final : public Reduction {
 public:
  /// Collective. spec.window must be shared.
  SharedReduction(Communicator& communicator, const ReductionSpec& spec);

  const float* result() const override;
  size_t bytes_moved() const override;

 protected:
  void begin() override;
  bool advance() override;
  Pending describe() const override;

 private:
  struct Flags;
  Flags& flags(int rank) const;

  TreeSum tree_;
  std::vector<const float*> slices_;  // the leaves of the tree, at the beginning of my slice
  std::unique_ptr<Window> node_;      // rank 0's memory: flags of all ranks, then the result
  float* shared_result_ = nullptr;
  size_t foreign_parts_ = 0;
  bool reduced_ = false;
  int arrived_ = 0;   // ranks 0 .. arrived_-1 are known to have arrived at this sequence number
  int finished_ = 0;  // likewise
};

}  // namespace tutti::comm
