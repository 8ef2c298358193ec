#pragma once
// Communication as part of the graph: the place in the order of things where a bucket of gradients is summed over replicas.

#include "tutti/graph/graph.h"

namespace tutti {

/// Inputs: the gradients of one bucket, each replaced by its sum over all replicas. No outputs. Run by parallel/, not by a kernel.
class AllReduceGradients : public Op {
 public:
  explicit AllReduceGradients(int bucket) : bucket_(bucket) {}
  int bucket() const { return bucket_; }  ///< buckets count from 0 in the order in which they complete
  std::string_view name() const override { return "all_reduce_gradients"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::exchange; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  bool mutates(int) const override { return true; }

 private:
  int bucket_;
};

}  // namespace tutti
