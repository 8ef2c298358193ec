#include "tutti/comm/run/block_exchange.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using Bytes = std::vector<std::byte>;

// Number of bytes that rank `from` sends rank `to` in this round; often 0.
size_t count_of(int from, int to, int round) {
  return static_cast<size_t>((from * 7 + to * 5 + round * 3) % 11) * static_cast<size_t>(round % 3);
}
std::byte value_of(int from, int to, int round, size_t i) {
  return static_cast<std::byte>(from * 64 + to * 16 + round * 5 + static_cast<int>(i));
}

// The blocks of one rank, three bytes apart, and their exchange.
struct Round {
  Bytes input, output;
  std::vector<Slice> receives;
  std::unique_ptr<BlockExchange> exchange;

  Round(Communicator& c, int round) {
    BlockExchangeSpec spec;
    for (int p = 0; p < c.size(); ++p) {
      const size_t out = count_of(c.rank(), p, round), in = count_of(p, c.rank(), round);
      spec.sends.push_back({input.size(), out});
      for (size_t i = 0; i < out; ++i) input.push_back(value_of(c.rank(), p, round, i));
      input.resize(input.size() + 3);
      spec.receives.push_back({output.size(), in});
      output.resize(output.size() + in + 3, std::byte{0xee});
    }
    receives = spec.receives;
    spec.input = input.data();
    spec.output = output.data();
    exchange = std::make_unique<BlockExchange>(c, std::move(spec));
  }
  void check(const Communicator& c, int round) const {
    for (int p = 0; p < c.size(); ++p) {
      const Slice& block = receives[static_cast<size_t>(p)];
      for (size_t i = 0; i < block.count; ++i)
        ASSERT_EQ(output[block.begin + i], value_of(p, c.rank(), round, i));
      ASSERT_EQ(output[block.end()], std::byte{0xee});
    }
  }
};

TEST(BlockExchange, EveryRankHasCountsOfItsOwnEachTime) {
  for (const std::vector<int>& nodes : {std::vector<int>{}, {0, 1, 0, 1}})
    run_ranks(
        4,
        [](Communicator& c) {
          for (int round = 0; round < 30; ++round) {
            Round blocks(c, round);
            blocks.exchange->run();
            blocks.check(c, round);
          }
        },
        nodes);
}

// The k-th exchange meets the k-th, in whatever order ranks move and wait.
TEST(BlockExchange, ManyInFlightMayBeWaitedForInAnyOrder) {
  for (const int threads : {0, 2})
    run_ranks(3, [threads](Communicator& c) {
      c.set_progress(std::make_shared<Progress>(threads));
      std::vector<Round> rounds;
      for (int round = 0; round < 12; ++round) {
        rounds.emplace_back(c, round);
        rounds.back().exchange->set_priority(c.rank() == 0 ? round : -round);
        rounds.back().exchange->start();
      }
      for (int k = 0; k < 12; ++k)
        rounds[static_cast<size_t>(c.rank() == 1 ? k : 11 - k)].exchange->wait();
      for (int round = 0; round < 12; ++round) rounds[static_cast<size_t>(round)].check(c, round);
    });
}

TEST(BlockExchange, TakesNoChannel) {
  run_ranks(2, [](Communicator& c) {
    const size_t before = c.channels().taken();
    for (int round = 0; round < 1000; ++round) {
      Round blocks(c, round % 50);
      blocks.exchange->run();
      ASSERT_EQ(c.channels().taken(), before);
    }
  });
}

TEST(BlockExchange, BlocksThatDoNotFitAreAnErrorOfTheReceiver) {
  Bytes data(16), room(16);
  const auto exchange = [&](Communicator& c, size_t sent, size_t received) {
    const int peer = 1 - c.rank();
    BlockExchangeSpec spec{.sends = {{}, {}}, .receives = {{}, {}}, .input = data.data()};
    spec.output = room.data();
    spec.sends[static_cast<size_t>(peer)] = {0, sent};
    spec.receives[static_cast<size_t>(peer)] = {0, received};
    BlockExchange(c, std::move(spec)).run();
  };
  for (const size_t expected : {3, 0, 7}) {
    EXPECT_TRUE(throws<CommError>({"exchange number 1:"},
                                  [&] {
                                    run_ranks(2, [&](Communicator& c) {
                                      if (c.rank() == 0) return exchange(c, 5, 0);
                                      exchange(c, 0, expected);
                                    });
                                  }))
        << "5 bytes are not " << expected;
  }
  run_ranks(2, [](Communicator& c) {
    EXPECT_THROW(BlockExchange(c, {.sends = {{0, 1}}, .receives = {{}, {}}}), PlanError);
    EXPECT_THROW(BlockExchange(c, {.sends = {{0, 1}, {1, 1}}, .receives = {{}, {}}}), PlanError);
    std::byte byte{};
    const auto mine = static_cast<size_t>(c.rank());
    BlockExchangeSpec spec{.sends = {{}, {}}, .receives = {{}, {}}, .input = &byte};
    spec.sends[mine].count = 1;
    EXPECT_THROW(BlockExchange(c, spec), PlanError);
    Bytes both(9);  // sends begin at byte 3 or 4, receives reach up to byte 4
    BlockExchangeSpec beside{.sends = {{3, 2}, {5, 4}}, .receives = {{0, 2}, {2, 2}}};
    if (c.rank() == 1) beside.sends = {{5, 4}, {3, 2}};
    beside.input = beside.output = both.data();
    EXPECT_THROW(BlockExchange(c, beside), PlanError);
    for (Slice& block : beside.sends) block = {4, 2};
    BlockExchange apart(c, beside);
    beside.receives = {{1, 2}, {0, 2}};  // one of these bytes would be overwritten
    EXPECT_TRUE(throws<PlanError>({"from ranks 0 and 1 overlap in the output"},
                                  [&] { BlockExchange lost(c, beside); }));
  });
}

// Each exchange is a new object, and the communicator counts them: all ranks have the same number.
TEST(BlockExchange, ItsNumberCountsTheCommunicatorsExchanges) {
  EXPECT_TRUE(throws<CommError>({"exchange number 3: rank 0"}, [&] {
    run_ranks(2, [](Communicator& c) {
      Bytes data(2), room(2);
      for (int step = 1; step <= 3; ++step) {
        const size_t more = step == 3 && c.rank() == 1 ? 1 : 0;
        BlockExchangeSpec spec{.sends = {{0, 1}, {0, 1}}, .receives = {{}, {}}};
        spec.receives[0] = {0, 1 + more};
        spec.receives[1] = {1 + more, c.rank() == 1 ? 0u : 1u};
        if (c.rank() == 1) spec.sends[1] = {};
        spec.input = data.data(), spec.output = room.data();
        BlockExchange(c, std::move(spec)).run();
      }
      c.barrier();
    });
  }));
}

// A wait that fails names the ranks that have not come.
TEST(BlockExchange, NamesWhoIsMissing) {
  EXPECT_TRUE(throws<CommError>({"not arrived: rank 2"}, [&] {
    run_ranks(3, [](Communicator& c) {
      c.set_timeout(patience(0.1));
      if (c.rank() == 2) return;
      Round blocks(c, 1);
      blocks.exchange->run();
    });
  }));
}

}  // namespace
}  // namespace tutti::comm
