#include "tutti/trace/machine_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tutti {

std::string disturbance(const MachineUse& use) {
  // Below, a system's own work and the clock ticks that it is counted in would be taken for others.
  constexpr double kOtherWork = 0.1, kSteal = 0.05, kThrottled = 0.1;
  std::vector<std::string> parts;
  if (use.other_work >= kOtherWork)
    parts.push_back(
        fmt::format("other work took {:.0f} % of the processors", 100 * use.other_work));
  if (use.steal >= kSteal)
    parts.push_back(fmt::format("the hypervisor kept {:.0f} % of the processors for other machines",
                                100 * use.steal));
  if (use.throttled >= kThrottled)
    parts.push_back(fmt::format(
        "the control group's quota of processor time was used up in {:.0f} % of its periods",
        100 * use.throttled));
  std::string text = fmt::format("{}", fmt::join(parts, ", and "));
  if (!text.empty() && text[0] >= 'a') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string disturbance_sentence(const MachineUse& use) {
  const std::string what = disturbance(use);
  return what.empty() ? "" : what + ": these times say little";
}

}  // namespace tutti
