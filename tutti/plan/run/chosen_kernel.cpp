#include "tutti/plan/run/chosen_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::plan {

backend::KernelCandidate chosen_for(const backend::Backend& backend, const Step& step,
                                    int64_t samples) {
  const std::vector<backend::KernelCandidate> candidates =
      backend.candidates(with_samples(step, samples));
  const auto at = std::ranges::find_if(
      candidates, [&](const auto& c) { return c.refusal.empty() && c.name == step.kernel; });
  if (at == candidates.end())
    throw DeviceError(
        fmt::format("layer '{}': kernel '{}' was chosen, but refuses a tile of {} samples",
                    step.name, step.kernel, samples));
  return *at;
}

}  // namespace tutti::plan
