#include "tutti/trace/machine_use.h"

#include <fmt/format.h>

#include "tutti/base/json.h"

namespace tutti::trace {
namespace {

// Below these shares, the system's own work and the resolution of its clock ticks would be mistaken
// for other work.
constexpr Disturbance kDisturbances[] = {
    {&MachineUse::other_work, 0.1, "Other work took {} of the processors"},
    {&MachineUse::steal, 0.05, "The hypervisor kept {} of the processors for other machines"},
    {&MachineUse::throttled, 0.1,
     "The control group's quota of processor time was used up in {} of its periods"}};

}  // namespace

std::span<const Disturbance> disturbances() { return kDisturbances; }

Json machine_json(const MachineUse& use) {
  return {{"other_work", use.other_work}, {"steal", use.steal}, {"throttled", use.throttled}};
}

std::string disturbance(const MachineUse& use) {
  std::string text;
  for (const Disturbance& kind : kDisturbances) {
    if (!(use.*kind.share >= kind.least)) continue;
    std::string part =
        fmt::format(fmt::runtime(kind.words), fmt::format("{:.0f} %", 100 * use.*kind.share));
    if (!text.empty())
      part = ", and " + std::string(1, static_cast<char>(part[0] - 'A' + 'a')) + part.substr(1);
    text += part;
  }
  return text;
}

std::string disturbance_sentence(const MachineUse& use) {
  const std::string what = disturbance(use);
  return what.empty() ? "" : what + ": these times say little";
}

}  // namespace tutti::trace
