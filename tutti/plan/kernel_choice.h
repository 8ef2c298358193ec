#pragma once
// Chooses the kernel of each step.

#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

class KernelChooser {
 public:
  /// Measures if `options` allows it, tries kernels that need it, and records its choices in
  /// options.choices. `backend` and `options` must outlive it.
  KernelChooser(const backend::Backend& backend, PlanOptions& options)
      : backend_(backend), options_(options) {}

  /// Returns the kernel of this step, for every size of tile in its band. The step then names the
  /// kernel and why the others were refused; its request stays unchanged. Throws DeviceError if
  /// there is none.
  backend::KernelCandidate pick(Step& step);

 private:
  backend::KernelCandidate* choose_tried(const Step& step,
                                         std::vector<backend::KernelCandidate>& candidates);
  int64_t size_refused(const Step& step, const backend::KernelCandidate& candidate) const;

  const backend::Backend& backend_;
  PlanOptions& options_;
};

}  // namespace tutti::plan
