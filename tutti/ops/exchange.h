#pragma once
// Communication as part of the graph: the place in the order of things where a bucket of gradients
// is summed over replicas.

#include "tutti/graph/graph.h"

namespace tutti {

/// Inputs: the gradients of one bucket, each replaced by its sum over all replicas. No outputs. Run
/// by parallel/, not by a kernel.
class AllReduceGradients : public Op {
 public:
  explicit AllReduceGradients(int bucket) : bucket_(bucket) {}
  int bucket() const {
    return bucket_;
  }  ///< buckets count from 0 in the order in which they complete
  std::string_view name() const override { return "all_reduce_gradients"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::exchange; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
};

/// Input: the block sums (ops/norm_update.h) of one bucket's parameters, replaced by their sum over
/// ranks where each rank has summed the blocks of its own shard only; nothing happens where every
/// rank updates everything. No outputs. Run by parallel/, not by a kernel.
class AllReduceNorms : public Op {
 public:
  explicit AllReduceNorms(int bucket) : bucket_(bucket) {}
  int bucket() const { return bucket_; }
  std::string_view name() const override { return "all_reduce_norms"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::exchange; }
  bool in_update() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
};

}  // namespace tutti
