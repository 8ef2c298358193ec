#include "tutti/sync/batch_dealer.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tutti::sync {
namespace {

TEST(OneByOneDealer, GivesEachTicketOnceAndNobodyMoreThanTwo) {
  OneByOneDealer dealer({.workers = 3, .together = 3});
  dealer.open(6, 12);
  EXPECT_EQ(dealer.next_for(1), 6);
  EXPECT_EQ(dealer.next_for(1), 7);
  EXPECT_EQ(dealer.next_for(1), std::nullopt);
  EXPECT_EQ(dealer.arrived(1).ticket, 6);
  EXPECT_EQ(dealer.next_for(1), 8);
  EXPECT_EQ(dealer.next_for(0), 9);
  dealer.close();
  EXPECT_EQ(dealer.end(), 12) << "a step has begun";
  EXPECT_EQ(dealer.next_for(2), 10);
  EXPECT_EQ(dealer.next_for(2), 11);
  EXPECT_TRUE(dealer.empty());
  EXPECT_EQ(dealer.next_for(0), std::nullopt);
}

TEST(OneByOneDealer, ClosesWithTheStepThatHasBegun) {
  OneByOneDealer dealer({.workers = 2, .together = 2});
  dealer.open(0, 100);
  EXPECT_EQ(dealer.next_for(0), 0);
  dealer.close();
  EXPECT_EQ(dealer.end(), 2);
  EXPECT_EQ(dealer.next_for(1), 1);
  EXPECT_EQ(dealer.next_for(1), std::nullopt);
}

TEST(OneByOneDealer, LetsNobodyBeginMoreThanTheBoundAheadOfTheSlowest) {
  for (const int64_t bound : {0, 1, 3}) {
    OneByOneDealer dealer({.workers = 2, .together = 2, .bound = bound});
    dealer.open(0, 1000);
    while (dealer.next_for(0)) dealer.arrived(0);
    EXPECT_EQ(dealer.given(0), bound + 1) << "the slowest has made none";
    EXPECT_TRUE(dealer.next_for(1));
    EXPECT_FALSE(dealer.next_for(0));
    dealer.arrived(1);
    EXPECT_TRUE(dealer.next_for(0));
  }
}

TEST(QuorumDealer, GivesTheTicketOfALateWorkerToAnother) {
  QuorumDealer dealer({.workers = 3, .together = 2, .quorum = true});
  dealer.open(0, 20);
  EXPECT_EQ(dealer.next_for(0), 0);
  EXPECT_EQ(dealer.next_for(1), 1);
  EXPECT_EQ(dealer.next_for(2), 2);
  EXPECT_TRUE(dealer.arrived(0).taken);
  EXPECT_TRUE(dealer.arrived(2).taken) << "whoever is first";
  EXPECT_FALSE(dealer.next_for(1)) << "it is at a gradient of the step before";
  EXPECT_EQ(dealer.next_for(0), 1) << "which somebody else makes now";
  dealer.served(0);
  EXPECT_FALSE(dealer.arrived(1).taken);
  EXPECT_EQ(dealer.next_for(1), 3);
  dealer.served(1);
  EXPECT_EQ(dealer.arrived(0).ticket, 1);
}

TEST(QuorumDealer, AtTheEndOfARoundWhoIsFreeMakesWhatALateWorkerIsAt) {
  QuorumDealer dealer({.workers = 3, .together = 2, .quorum = true});
  dealer.open(0, 2);
  EXPECT_EQ(dealer.next_for(0), 0);
  EXPECT_EQ(dealer.next_for(1), 1);
  EXPECT_EQ(dealer.next_for(2), 0);
  EXPECT_TRUE(dealer.arrived(0).taken);
  EXPECT_FALSE(dealer.arrived(2).taken) << "the other one was faster";
  EXPECT_EQ(dealer.next_for(0), std::nullopt) << "one gradient of each worker";
  EXPECT_EQ(dealer.next_for(2), 1);
  EXPECT_FALSE(dealer.empty());
  dealer.served(2);
  EXPECT_TRUE(dealer.arrived(2).taken);
  EXPECT_TRUE(dealer.empty());
  EXPECT_FALSE(dealer.arrived(1).taken);
  dealer.open(2, 4);
  EXPECT_EQ(dealer.next_for(1), 2);
}

TEST(QuorumDealer, WhoWasLateGetsNothingToReadAheadUntilItIsInAStep) {
  QuorumDealer dealer({.workers = 2, .together = 1, .quorum = true});
  dealer.open(0, 20);
  EXPECT_EQ(dealer.next_for(0), 0);
  EXPECT_EQ(dealer.next_for(1), 1);
  EXPECT_TRUE(dealer.arrived(0).taken);
  EXPECT_FALSE(dealer.arrived(1).taken);
  EXPECT_EQ(dealer.next_for(1), 1);
  EXPECT_FALSE(dealer.next_for(1)) << "it may be late again";
  EXPECT_EQ(dealer.next_for(0), 2);
  EXPECT_EQ(dealer.next_for(0), 3) << "it was not late";
  dealer.served(1);
  EXPECT_TRUE(dealer.arrived(1).taken);
  EXPECT_EQ(dealer.next_for(1), 4);
  EXPECT_EQ(dealer.next_for(1), 5);
}

/// Plays workers of random speed, in any order, with a stop: each ticket is part of one step.
void play(int workers, int together, int steps, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << workers << " workers, " << together << " together, " << steps
                                  << " steps, seed " << seed);
  std::mt19937 random(seed);
  QuorumDealer dealer({.workers = workers, .together = together, .quorum = true});
  struct Worker {
    std::deque<int64_t> tickets;
    bool makes = false;  // it computes a gradient
    bool rests = false;  // it has sent one and wants weights
    int64_t version = 0;
  };
  int64_t first = 0;
  for (int round = 0; round < 3; ++round) {
    const int64_t end = first + int64_t{steps} * together;
    dealer.open(first, end);
    std::vector<Worker> all(static_cast<size_t>(workers));
    std::set<int64_t> taken;
    std::set<int> in_step;
    int64_t version = 0;
    int idle = 0;
    while (!dealer.empty()) {
      ASSERT_LT(++idle, 10000) << "nobody goes on";
      for (int w = 0; w < workers; ++w)
        while (const auto ticket = dealer.next_for(w))
          all[static_cast<size_t>(w)].tickets.push_back(*ticket);
      const int w = static_cast<int>(random() % static_cast<uint32_t>(workers));
      Worker& worker = all[static_cast<size_t>(w)];
      if (worker.makes) {
        if (w == 0 && random() % 4 > 0) continue;  // a slow one
        worker.makes = false;
        worker.rests = true;
        const auto arrival = dealer.arrived(w);
        const int64_t ticket = worker.tickets.front();
        worker.tickets.pop_front();
        if (arrival.taken) {
          EXPECT_EQ(arrival.ticket, ticket);
          EXPECT_EQ(worker.version, version) << "of old weights";
          EXPECT_TRUE(taken.insert(ticket).second) << "twice";
          EXPECT_TRUE(in_step.insert(w).second) << "two of one worker";
          if (std::ssize(in_step) == together) {
            in_step.clear();
            ++version;
          }
        }
      } else if (!worker.tickets.empty() && !in_step.contains(w)) {
        if (worker.rests) {
          dealer.served(w);
          worker.version = version;
          worker.rests = false;
        }
        worker.makes = true;
      }
      if (round == 1 && version == steps / 2) dealer.close();
    }
    EXPECT_EQ(std::ssize(taken), dealer.end() - first);
    EXPECT_EQ(*taken.rbegin() + 1, dealer.end());
    EXPECT_TRUE(in_step.empty()) << "whole steps";
    // Gradients still in flight come too late.
    for (int w = 0; w < workers; ++w) {
      Worker& worker = all[static_cast<size_t>(w)];
      for (; !worker.tickets.empty() || worker.makes; worker.makes = false) {
        if (!worker.makes && worker.rests) dealer.served(w);
        if (!worker.tickets.empty()) worker.tickets.pop_front();
        EXPECT_FALSE(dealer.arrived(w).taken);
        worker.rests = true;
      }
    }
    first = dealer.end();
  }
}

TEST(QuorumDealer, EveryTicketIsInOneStepWhoeverIsLate) {
  uint32_t seed = 0;
  for (const int workers : {1, 2, 3, 5, 8})
    for (int together = 1; together <= workers; ++together)
      for (const int steps : {1, 2, 7})
        for (int again = 0; again < 8; ++again) play(workers, together, steps, ++seed);
}

}  // namespace
}  // namespace tutti::sync
