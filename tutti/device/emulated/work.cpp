#include "tutti/device/emulated/work.h"

namespace tutti::device {

void count_work(const Work& work, DeviceCounts& counts) {
  if (std::holds_alternative<KernelWork>(work)) ++counts.launches;
  if (std::holds_alternative<HostFunctionWork>(work)) ++counts.host_work;
  if (const auto* const copy = std::get_if<CopyWork>(&work)) {
    ++counts.copies;
    counts.copied_bytes += static_cast<int64_t>(copy->bytes);
  }
  if (const auto* const replay = std::get_if<ReplayWork>(&work)) {
    ++counts.replays;
    for (const RecordedWork::Branch& branch : replay->recorded->branches)
      for (const Work& one : branch.work) count_work(one, counts);
  }
}

}  // namespace tutti::device
