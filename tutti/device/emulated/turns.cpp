#include "tutti/device/emulated/turns.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

constexpr uint32_t kPriorities = 1u << 16;

bool can_go_on(const Queue& queue) {
  if (queue.work.empty()) return false;
  const auto* const wait = std::get_if<WaitWork>(&queue.work.front());
  return !wait || wait->moment->happened;
}

}  // namespace

std::shared_ptr<Queue> Turns::add(std::string_view name) {
  return queues_.emplace_back(std::make_shared<Queue>(
      Queue{.name = std::string(name), .work = {}, .priority = chance_.below(kPriorities)}));
}

Queue& Turns::choose() {
  std::erase_if(queues_, [](const auto& queue) { return queue->closed && queue->work.empty(); });
  Queue* first = nullptr;
  for (const auto& queue : queues_)
    if (can_go_on(*queue) && (!first || queue->priority < first->priority)) first = queue.get();
  // A wait is for a record that was put on a stream before it.
  CHECK(first, "no stream can go on: {}", to_string());
  if (chance_.below(64) == 1)
    queues_[chance_.below(static_cast<uint32_t>(queues_.size()))]->priority =
        chance_.below(kPriorities);
  return *first;
}

std::optional<Work> Turns::next() {
  Queue& queue = choose();
  Work work = std::move(queue.work.front());
  queue.work.pop_front();
  if (std::holds_alternative<WaitWork>(work)) return {};
  if (const auto* const record = std::get_if<RecordWork>(&work)) {
    record->moment->happened = true;
    return {};
  }
  if (const auto* const replayed = std::get_if<ReplayWork>(&work)) {
    replay(replayed->recorded, queue);
    return {};
  }
  return work;
}

void Turns::replay(const std::shared_ptr<const RecordedWork>& recorded, Queue& queue) {
  std::map<const Moment*, std::shared_ptr<Moment>> moments;  // this replay's, by the recorded ones
  const auto fresh = [&](const Moment* moment) {
    std::shared_ptr<Moment>& own = moments[moment];
    if (!own) own = std::make_shared<Moment>();
    return own;
  };
  const auto end = std::make_shared<Moment>();
  queue.work.push_front(WaitWork{end});
  for (const RecordedWork::Branch& branch : recorded->branches) {
    const std::shared_ptr<Queue> own = add(fmt::format("{}, replayed", branch.stream));
    own->closed = true;
    for (const Work& work : branch.work) {
      if (const auto* const record = std::get_if<RecordWork>(&work))
        own->work.push_back(RecordWork{fresh(record->moment.get())});
      else if (const auto* const wait = std::get_if<WaitWork>(&work))
        own->work.push_back(WaitWork{fresh(wait->moment.get())});
      else
        own->work.push_back(work);
    }
    if (&branch == &recorded->branches.front()) own->work.push_back(RecordWork{end});
  }
}

std::string Turns::to_string() const {
  std::string text;
  for (const auto& queue : queues_)
    if (!queue->work.empty())
      text += fmt::format("{}'{}' ({}{})", text.empty() ? "left are: " : ", ", queue->name,
                          queue->work.size(), can_go_on(*queue) ? "" : ", waits for an event");
  return text;
}

}  // namespace tutti::device
