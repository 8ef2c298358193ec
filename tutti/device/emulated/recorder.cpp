#include "tutti/device/emulated/recorder.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::device {

Recorder::Recorder(int64_t number, std::shared_ptr<Queue> origin) : number_(number) {
  branches_.push_back({.queue = std::move(origin), .work = {}, .after = {0}});
}

bool Recorder::began_on(const std::shared_ptr<Queue>& queue) const {
  return branches_.front().queue == queue;
}

bool Recorder::has(const std::shared_ptr<Queue>& queue) const {
  return std::ranges::find(branches_, queue, &Branch::queue) != branches_.end();
}

Recorder::Branch& Recorder::branch_of(const std::shared_ptr<Queue>& queue) {
  const auto branch = std::ranges::find(branches_, queue, &Branch::queue);
  CHECK(branch != branches_.end());
  return *branch;
}

void Recorder::put(const std::shared_ptr<Queue>& queue, Work work) {
  Branch& branch = branch_of(queue);
  branch.work.push_back(std::move(work));
  branch.after[static_cast<size_t>(&branch - branches_.data())] = ++branch.pieces;
}

std::shared_ptr<Moment> Recorder::record(const std::shared_ptr<Queue>& queue) {
  Branch& branch = branch_of(queue);
  auto moment = std::make_shared<Moment>(Moment{.recording = number_, .after = branch.after});
  branch.work.emplace_back(RecordWork{moment});
  return moment;
}

void Recorder::wait(const std::shared_ptr<Queue>& queue, const std::shared_ptr<Moment>& moment) {
  if (!has(queue)) {
    branches_.push_back({.queue = queue, .work = {}, .after = {}});
    for (Branch& branch : branches_) branch.after.resize(branches_.size());
  }
  Branch& branch = branch_of(queue);
  for (size_t b = 0; b < moment->after.size(); ++b)
    branch.after[b] = std::max(branch.after[b], moment->after[b]);
  branch.work.emplace_back(WaitWork{moment});
}

std::shared_ptr<const RecordedWork> Recorder::end() const {
  const Branch& origin = branches_.front();
  auto recorded = std::make_shared<RecordedWork>();
  for (size_t b = 0; b < branches_.size(); ++b) {
    const Branch& branch = branches_[b];
    if (origin.after[b] < branch.pieces)
      throw DeviceError(
          fmt::format("emulated device: the recording on stream '{}' ends before it "
                      "has waited for the last work of stream '{}'",
                      origin.queue->name, branch.queue->name));
    recorded->branches.push_back({branch.queue->name, branch.work});
  }
  return recorded;
}

}  // namespace tutti::device
