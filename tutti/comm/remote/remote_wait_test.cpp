// Requests that are late, given up, or bound to other data.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/remote/remote_memory.h"
#include "tutti/comm/remote/request.h"
#include "tutti/comm/remote/transfer.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

// Requests of a rank with wrong assumptions about its target.
TEST(RemoteRequest, ATargetChecksWhatItIsAskedFor) {
  using remote::refusal_of;
  const remote::Request good{
      .offset = 8, .bytes = 8, .access = Access::accumulate, .element = Element::f64};
  EXPECT_EQ(refusal_of(good, 16), "");
  EXPECT_NE(refusal_of(good, 15), "");
  for (const auto& wrong :
       {remote::Request{.offset = UINT64_MAX, .bytes = 8}, remote::Request{.bytes = UINT64_MAX},
        remote::Request{.access = Access{9}}, remote::Request{.element = Element{77}},
        remote::Request{.op = ReduceOp{9}}})
    EXPECT_NE(refusal_of(wrong, 16), "");
}

// Between ranks that do not see each other's memory, and between neighbours.
TEST(RemoteAccess, OtherDataForLaterStarts) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {0, 0}})
    run_ranks(
        2,
        [](Communicator& c) {
          const auto memory = c.expose(64);
          std::vector<std::byte> a(8, std::byte{1}), b(12, std::byte{2}), all(12), large(61);
          const auto put = memory->plan_put({.rank = 1 - c.rank(), .offset = 4, .data = a});
          for (auto* data : {&a, &b}) {
            put->rebind(*data);
            put->start();
            put->wait();
          }
          EXPECT_THROW(put->rebind(large), PlanError);
          memory->get(1 - c.rank(), 4, all);
          EXPECT_EQ(all, b);
          c.barrier();
        },
        nodes);
}

TEST(RemoteAccess, ATargetThatServesNobodyIsATimeOutThatNamesIt) {
  EXPECT_TRUE(throws<CommError>({"put number 1: no answer within ", "not arrived: rank 0 on"}, [&] {
    run_ranks(2,
              [](Communicator& c) {
                const auto memory = c.expose(64);
                if (c.rank() == 1) {
                  c.set_timeout(patience(0.2));
                  memory->put(0, 0, memory->data());
                } else {
                  sleep_patiently(2);
                }
              },
              {0, 1});
  }));
}

TEST(RemoteAccess, APatientRequestOutlastsTheTimeOut) {
  run_ranks(2,
            [](Communicator& c) {
              const auto memory = c.expose(64);
              if (c.rank() == 0) sleep_patiently(0.4);
              if (c.rank() == 1) {
                c.set_timeout(patience(0.05));
                const auto put =
                    memory->plan_put({.rank = 0, .data = memory->data(), .patient = true});
                put->start();
                put->wait();
                c.set_timeout(kHangSeconds);
              }
              c.barrier();
            },
            {0, 1});
}

// A rank polls another operation than the one that others request of it.
TEST(RemoteAccess, ARankThatOnlyTestsServesTheOthers) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {0, 0}})
    run_ranks(
        2,
        [](Communicator& c) {
          c.set_timeout(kHangSeconds);
          const auto memory = c.expose(64);
          const std::vector<float> one{1};
          std::vector<std::byte> word(1);
          if (c.rank() == 1) {
            memory->accumulate(0, 0, std::as_bytes(std::span(one)), Element::f32);
            const auto tell = c.plan_send({.peer = 0, .data = word});
            tell->start();
            tell->wait();
          } else {
            const auto hear = c.plan_receive({.peer = 1, .data = word});
            hear->start();
            while (!hear->test()) std::this_thread::yield();
            EXPECT_EQ(memory->accumulates(), 1u);
          }
          c.barrier();
        },
        nodes);
}

// The pacer would otherwise keep a pointer to a destroyed flow.
TEST(RemoteTransfer, OneThatCannotBeginLeavesThePacer) {
  Pacer pacer;
  Pacer::Flow other;
  pacer.enter(other, 0);
  std::vector<std::byte> data(10);
  alignas(remote::Transfer) std::array<std::byte, sizeof(remote::Transfer)> place;
  EXPECT_THROW(new (place.data()) remote::Transfer(
                   remote::Transfer::Way::send, data,
                   {.messages = []() -> std::unique_ptr<Wire::Messages> { throw CommError("no"); }},
                   pacer, 1),
               CommError);
  EXPECT_TRUE(pacer.may_begin(other)) << "it waits for one that is more urgent and gone";
  pacer.leave(other);
}

// The answer to a request that was given up would be taken for the next one's.
TEST(RemoteAccess, NothingFollowsOneThatWasGivenUpUnderWay) {
  std::atomic<bool> serves{false};
  run_ranks(2,
            [&](Communicator& c) {
              const auto memory = c.expose(64);
              if (c.rank() == 1) {
                auto put = memory->plan_put({.rank = 0, .data = memory->data()});
                put->start();
                put.reset();
                EXPECT_THROW(memory->get(0, 0, memory->data()), CommError);
                const auto second = memory->plan_get({.rank = 0, .data = memory->data()});
                const auto third = memory->plan_get({.rank = 0, .data = memory->data()});
                EXPECT_THROW(second->start(), CommError);
                EXPECT_THROW(third->start(), CommError) << "it waits for the second";
                serves = true;
              }
              while (!serves) std::this_thread::yield();
              c.barrier();
            },
            {0, 1});
}

}  // namespace
}  // namespace tutti::comm
