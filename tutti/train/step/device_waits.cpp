#include "tutti/train/step/device_waits.h"

namespace tutti::train {

std::vector<HostWaits> host_waits(const TrainingStepSpec& spec, const Network& network,
                                  bool dependent_batches) {
  std::vector<HostWaits> waits;
  const auto micro_batches = static_cast<int64_t>(spec.map.local_count()) * spec.accumulate;
  const auto add = [&](int64_t times, const char* why) {
    if (times > 0) waits.push_back({.times = times * micro_batches, .why = why});
  };
  if (spec.noise.every > 0)
    waits.push_back({.times = micro_batches + 1,
                     .steps = spec.noise.every,
                     .why = "gradients, whose noise the host measures"});
  int64_t kept = 0;
  for (const KeptMicroBatches& values : network.kept) kept += std::ssize(values.of_rank);
  add(kept, "what the update of tables reads of each micro-batch");
  if (dependent_batches) add(2, "a loss and predictions, on which the next batch depends");
  return waits;
}

std::string host_waits_text(const std::vector<HostWaits>& waits) {
  if (waits.empty()) return "the host waits for no result of a step, and reads losses later";
  std::string text;
  for (const HostWaits& one : waits)
    text += fmt::format("{}{} times in {} for {}", text.empty() ? "" : ", ", one.times,
                        one.steps == 1 ? "a step" : fmt::format("{} steps", one.steps), one.why);
  return "the host waits " + text;
}

}  // namespace tutti::train
