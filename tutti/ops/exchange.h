#pragma once
// Communication as part of the graph: these nodes fix where in the order of execution a bucket of
// gradients is summed over replicas.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Inputs: the gradients of one bucket, each replaced by its sum over all replicas. No outputs.
/// `sharded`: each rank receives only the sum of its own shard of the bucket. Run by parallel/, not
/// by a kernel.
class AllReduceGradients : public NamedOp<"all_reduce_gradients", Walk::exchange> {
 public:
  explicit AllReduceGradients(int bucket, bool sharded = false)
      : bucket_(bucket), sharded_(sharded) {}
  /// Buckets count from 0 in the order in which they complete.
  int bucket() const { return bucket_; }
  bool sharded() const { return sharded_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
  bool sharded_;
};

/// Input: the block sums (ops/norm_update.h) of one bucket's parameters, replaced by their sum over
/// ranks. Where updates are sharded each rank has summed the blocks of its own shard. For a
/// parameter in `slices`, of which each rank holds a slice, the first block's sum becomes the
/// sum of all ranks' blocks, and the others become 0. Not in a graph where every rank updates
/// everything. No outputs. Run by parallel/, not by a kernel.
class AllReduceNorms : public NamedOp<"all_reduce_norms", Walk::exchange> {
 public:
  /// `slices`: for each parameter of the bucket, whether ranks hold slices of it; empty: no slices.
  explicit AllReduceNorms(int bucket, std::vector<bool> slices = {})
      : bucket_(bucket), slices_(std::move(slices)) {}
  int bucket() const { return bucket_; }
  const std::vector<bool>& slices() const { return slices_; }
  std::string attributes() const override;
  bool in_update() const override { return true; }
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
  std::vector<bool> slices_;  // by parameter of the op that makes the sums
};

/// Inputs: the parameters of one bucket, of which every rank has updated its shard. Each rank
/// receives the shards of the others. No outputs. Run by parallel/, not by a kernel.
class AllGatherWeights : public NamedOp<"all_gather_weights", Walk::exchange> {
 public:
  explicit AllGatherWeights(int bucket) : bucket_(bucket) {}
  int bucket() const { return bucket_; }
  std::string attributes() const override;
  bool in_update() const override { return true; }
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
};

}  // namespace tutti::ops
