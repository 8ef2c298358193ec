#pragma once
// The reduction between ranks that do not share memory.
//
// Pairwise-exchange reduce-scatter, then allgather, both nonblocking; each rank owns one slice of the bucket.
//   1  start(): send slice q of each of my parts, in place, to rank q, for all q; post all receives.
//   2  my slice of everyone's parts is there: evaluate the tree over them (mine in place), into the result.
//   3  send my slice of the result to everyone; their slices arrive at their places in the result.
// Steps: 2 rounds of P-1 messages (per part in round 1). Bytes sent per rank: parts * S (P-1)/P + S (P-1)/P; with one part per
// rank this is the ring's bandwidth cost, in 2 rounds instead of 2 (P-1). S = bucket, P = ranks.
//
// All messages are persistent requests made once. The sum is taken by one rank per slice in the order of the tree, so it does not
// depend on the order in which messages arrive.

#include <mpi.h>

#include <memory>
#include <vector>

#include "tutti/comm/reduction.h"
#include "tutti/comm/tree.h"

namespace tutti::comm {

class PairwiseReduction final : public Reduction {
 public:
  static constexpr int kTags = 2;  ///< uses the tags tag and tag + 1
  PairwiseReduction(Communicator& communicator, const ReductionSpec& spec, MPI_Comm comm, int tag);
  ~PairwiseReduction() override;

  const float* result() const override { return result_; }
  size_t bytes_moved() const override { return bytes_sent_; }

 protected:
  void begin() override;
  bool advance() override;
  Pending describe() const override;

 private:
  struct FreeMemory {
    void operator()(float* memory) const;
  };
  using Floats = std::unique_ptr<float[], FreeMemory>;
  // Persistent requests of one kind, and the peer of each.
  struct Group {
    std::vector<MPI_Request> requests;
    std::vector<int> peers;
    bool started = false;
    void start();
    bool test();
    bool done(size_t i) const;
  };
  static Floats allocate(size_t count);
  void add_send(Group& group, const float* data, int count, int peer, int tag, MPI_Comm comm);
  void add_receive(Group& group, float* data, int count, int peer, int tag, MPI_Comm comm);

  TreeSum tree_;
  Floats arrived_parts_;
  Floats own_result_;
  float* result_;
  std::vector<const float*> slices_;
  Group part_sends_, part_receives_, slice_sends_, slice_receives_;
  size_t bytes_sent_ = 0;
  bool reduced_ = false;
};

}  // namespace tutti::comm
