#include "tutti/comm/message_slots.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

size_t message_slots(Communicator& communicator, const std::vector<RoundOfMessages>& rounds) {
  size_t most = 1;
  for (const RoundOfMessages& round : rounds) {
    std::map<int, size_t> count;
    for (const auto& item : round.sends) most = std::max(most, ++count[item.peer]);
  }
  return communicator.most(most);
}

std::vector<int> missing_peers(const RoundOfMessages& round, std::vector<int> not_arrived,
                               const std::vector<int>& not_taken) {
  const auto expected = [&](int peer) {
    return std::ranges::find(round.receives, peer, &RoundOfMessages::Item::peer) !=
           round.receives.end();
  };
  std::vector<int> missing = std::move(not_arrived);
  std::ranges::copy_if(not_taken, std::back_inserter(missing),
                       [&](int peer) { return !expected(peer); });
  if (missing.empty()) missing = not_taken;
  std::ranges::sort(missing);
  missing.erase(std::ranges::unique(missing).begin(), missing.end());
  return missing;
}

}  // namespace tutti::comm
