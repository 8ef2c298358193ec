#include "tutti/exchange/arena_message.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::exchange {
namespace {

/// Longer than one piece.
std::vector<float> long_values() {
  std::vector<float> values((size_t{1} << 24) + 1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4093);
  return values;
}

TEST(ArenaMessage, ArrivesWholeHoweverLateTheSenderComes) {
  const std::vector<float> sent = long_values();
  const double timeout = patience(0.2);
  comm::run_ranks(2, [&](comm::Communicator& c) {
    c.set_timeout(timeout);
    std::vector<float> data = c.rank() == 0 ? std::vector<float>(sent.size()) : sent;
    const auto bytes = std::as_writable_bytes(std::span(data));
    if (c.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::duration<double>(3 * timeout));
      send_arena(c, "values", 0, 7, bytes);
    } else {
      receive_arena(c, "values", 1, 7, bytes);
    }
    EXPECT_EQ(data, sent);
  });
}

TEST(ArenaMessage, ABroadcastReachesEveryRank) {
  const std::vector<float> sent = long_values();
  for (const int ranks : {1, 3})
    comm::run_ranks(ranks, [&](comm::Communicator& c) {
      const int root = ranks - 1;
      std::vector<float> data = c.rank() == root ? sent : std::vector<float>(sent.size());
      broadcast_arena(c, "values", root, std::as_writable_bytes(std::span(data)));
      EXPECT_EQ(data, sent);
    });
}

}  // namespace
}  // namespace tutti::exchange
