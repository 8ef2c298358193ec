#pragma once
// Which kernel a step gets.

#include "tutti/plan/plan.h"

namespace tutti {

class KernelChooser {
 public:
  /// Measures as `options` allows, and records what it has chosen in options.choices. Both must
  /// outlive it.
  KernelChooser(const Backend& backend, PlanOptions& options)
      : backend_(backend), options_(options) {}

  /// The kernel of this step, for every size of tile that its band has. The step then names it, and
  /// why not the others; its request stays what was asked. Throws DeviceError if there is none.
  KernelCandidate pick(Step& step);

 private:
  int64_t size_refused(const Step& step, const KernelCandidate& candidate) const;

  const Backend& backend_;
  PlanOptions& options_;
};

}  // namespace tutti
