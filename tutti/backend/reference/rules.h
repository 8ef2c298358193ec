#pragma once
// The arithmetic of every op as plain loops over PlainTensors. ReferenceKernel (reference.cpp)
// loads and stores operands around these rules, keeps the sums of reductions, and passes the call's
// data to the rules.

#include <functional>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/reference/plain_tensor.h"
#include "tutti/ops/activation.h"

namespace tutti {

/// The data of one call. `sums` are this thread's accumulators in run, all threads' totals in
/// finish.
struct RuleCall {
  std::vector<PlainTensor>& in;
  std::vector<PlainTensor>& out;
  std::span<double> sums;
  int64_t first_sample;
  const StepInfo& step;
};

struct Rule {
  std::function<void(const RuleCall&)> run;
  // Reductions only:
  size_t sums = 0;  ///< accumulators, zero at first
  std::function<void(const RuleCall&)> finish =
      {};  ///< makes the unbatched outputs from the totals
  std::vector<size_t> unbatched_in = {}, unbatched_out = {};  ///< operands that finish may touch
};

/// Returns f(x).
double activate(const ActivationAttributes& f, double x);

/// Returns the rule for an op, without `run` if this family does not have it. `request` gives the
/// shapes.
Rule conv_rule(const KernelRequest& request);
Rule batch_norm_rule(const KernelRequest& request);
Rule pointwise_rule(const KernelRequest& request);
Rule dense_rule(const KernelRequest& request);
Rule pool_rule(const KernelRequest& request);
Rule resize_rule(const KernelRequest& request);
Rule spectrum_rule(const KernelRequest& request);
Rule interaction_rule(const KernelRequest& request);
Rule attention_rule(const KernelRequest& request);
Rule sequence_rule(const KernelRequest& request);
Rule token_head_rule(const KernelRequest& request);
Rule wave_rule(const KernelRequest& request);
Rule embedding_rule(const KernelRequest& request);
Rule shape_rule(const KernelRequest& request);
Rule loss_rule(const KernelRequest& request);
Rule update_rule(const KernelRequest& request);

}  // namespace tutti
