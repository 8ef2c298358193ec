#include "tutti/comm/transport/tcp/matching.h"

#include <algorithm>
#include <utility>

namespace tutti::comm::tcp {

void Matching::tidy(Queues::iterator at) {
  if (at->second.receives.empty() && at->second.messages.empty()) queues_.erase(at);
}

std::unique_ptr<Arrived> Matching::message_for(const Key& key) {
  const auto at = queues_.find(key);
  if (at == queues_.end() || at->second.messages.empty()) return nullptr;
  std::unique_ptr<Arrived> first = std::move(at->second.messages.front());
  at->second.messages.erase(at->second.messages.begin());
  tidy(at);
  return first;
}

Incoming* Matching::receive_for(const Key& key) {
  const auto at = queues_.find(key);
  if (at == queues_.end() || at->second.receives.empty()) return nullptr;
  Incoming* const first = at->second.receives.front();
  at->second.receives.erase(at->second.receives.begin());
  tidy(at);
  return first;
}

void Matching::wait(Incoming& receive) { queues_[receive.key].receives.push_back(&receive); }

void Matching::keep(const Key& key, std::unique_ptr<Arrived> message) {
  queues_[key].messages.push_back(std::move(message));
}

void Matching::withdraw(const Incoming& receive) {
  const auto at = queues_.find(receive.key);
  if (at == queues_.end()) return;
  std::erase(at->second.receives, &receive);
  tidy(at);
}

void Matching::withdraw(const Key& key, const Inbound& from, uint64_t id) {
  const auto at = queues_.find(key);
  if (at == queues_.end()) return;
  std::erase_if(at->second.messages, [&](const auto& message) {
    return message->announced && message->from == &from && message->id == id;
  });
  tidy(at);
}

void Matching::forget_unfinished(const Inbound& from) {
  for (const Key& inbox : inboxes_) {
    const auto at = queues_.find(inbox);
    if (at == queues_.end()) continue;
    std::erase_if(at->second.messages, [&](const auto& message) {
      return message->from == &from && (message->announced || message->have < message->bytes);
    });
    tidy(at);
  }
}

std::vector<std::unique_ptr<Arrived>> Matching::close(uint64_t wire) {
  closed_.insert(wire);
  std::vector<std::unique_ptr<Arrived>> left;
  for (auto at = queues_.begin(); at != queues_.end();) {
    if (at->first.wire != wire) {
      ++at;
      continue;
    }
    std::ranges::move(at->second.messages, std::back_inserter(left));
    at = queues_.erase(at);
  }
  return left;
}

}  // namespace tutti::comm::tcp
