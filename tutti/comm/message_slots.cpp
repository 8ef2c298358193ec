#include "tutti/comm/message_slots.h"

#include <algorithm>
#include <map>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

size_t message_slots(Communicator& communicator, const std::vector<RoundOfMessages>& rounds) {
  size_t most = 1;
  for (const RoundOfMessages& round : rounds) {
    std::map<int, size_t> count;
    for (const auto& item : round.sends) most = std::max(most, ++count[item.peer]);
  }
  return std::ranges::max(communicator.allgather_value(most));
}

}  // namespace tutti::comm
