#include "tutti/capi/remote/remote_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/capi/remote/request.h"
#include "tutti/capi/remote/service.h"
#include "tutti/capi/remote/transfer.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/tcp/run_processes.h"

namespace tutti::capi {
namespace {

using namespace std::chrono_literals;
using Body = std::function<void(comm::Communicator&)>;

// On one node, on nodes of different sizes, and as threads with connections of their own.
void run_everywhere(const Body& body) {
  comm::run_ranks(3, body);
  comm::run_ranks(3, body, {0, 0, 1});
  comm::LocalStore store;
  std::vector<std::jthread> threads;
  for (int p = 0; p < 3; ++p)
    threads.emplace_back([&, p] {
      EXPECT_NO_THROW(
          body(*comm::make_store_communicator(store, "remote", p, 3, comm::options_with(false))));
    });
}

// Runs the body on two ranks that do not see each other's memory.
void run_apart(const Body& body) { comm::run_ranks(2, body, {0, 1}); }
// Runs it between neighbours, too.
void run_near_and_apart(const Body& body) {
  run_apart(body);
  comm::run_ranks(2, body, {0, 0});
}

template <class T>
std::span<std::byte> raw(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}
template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <class T>
void expect_all(std::span<std::byte> memory, T value) {
  for (const T found : as<T>(memory)) ASSERT_EQ(found, value);
}

// The memory of a server is bounded by slots and kRoom, for any number and size of requests.
TEST(RemoteMemory, AServerKeepsABoundedAmount) {
  constexpr int kRanks = 12;
  std::vector<int> apart(kRanks);
  std::iota(apart.begin(), apart.end(), 0);
  comm::run_ranks(
      kRanks,
      [](comm::Communicator& c) {
        constexpr size_t kCount = size_t{2} << 20;  // 8 MiB each: almost three times kRoom together
        RemoteMemory memory(c, c.rank() == 0 ? kCount * sizeof(float) : 0);
        if (c.rank() > 0) {
          std::vector<float> x(kCount, 1);
          memory.plan_accumulate({.data = raw(x)})->run();
        } else {
          std::vector<int> all(kRanks - 1);
          std::iota(all.begin(), all.end(), 1);
          memory.wait_for_accumulates(kRanks - 1, all);
          expect_all(memory.data(), static_cast<float>(kRanks - 1));
          EXPECT_LE(memory.taken().requests, remote::Service::kSlots);
          EXPECT_LE(memory.taken().bytes, remote::Service::kRoom);
          EXPECT_GT(memory.taken().bytes, 0u);
        }
        c.barrier();
      },
      apart);
}

TEST(RemoteMemory, NothingIsAppliedWhileTheOwnerHoldsIt) {
  run_everywhere([](comm::Communicator& c) {
    RemoteMemory memory(c, sizeof(int32_t) * 4);
    std::vector<int32_t> one(4, 1);
    if (c.rank() == 0) {
      const auto hold = memory.hold();
      c.barrier();  // no request comes before the memory is held
      for (const auto end = std::chrono::steady_clock::now() + 50ms;
           std::chrono::steady_clock::now() < end;)
        c.progress();  // long enough for the requests to arrive
      expect_all(memory.data(), int32_t{0});
    } else {
      c.barrier();
      memory.plan_accumulate({.data = raw(one), .element = comm::Element::i32})->run();
    }
    c.barrier();
    if (c.rank() == 0) expect_all(memory.data(), int32_t{2});
    c.barrier();
  });
}

TEST(RemoteMemory, RequestsToOneTargetKeepTheirOrder) {
  run_everywhere([](comm::Communicator& c) {
    constexpr size_t kCount = 70'000;
    RemoteMemory memory(c, kCount * sizeof(int));
    const int target = (c.rank() + 1) % c.size();
    std::vector<std::vector<int>> data;
    std::vector<std::unique_ptr<RemoteAccess>> puts;
    for (int k = 0; k < 6; ++k) {
      data.emplace_back(k % 2 == 0 ? kCount : 10, k);
      puts.push_back(memory.plan_put({.rank = target, .data = raw(data.back())}));
    }
    for (const auto& put : puts) put->start();
    for (const auto& put : puts) put->wait();
    c.barrier();
    const auto found = as<int>(memory.data());
    EXPECT_EQ(found[9], 5);
    EXPECT_EQ(found[10], 4);
    EXPECT_EQ(found[kCount - 1], 4);
    c.barrier();
  });
}

TEST(RemoteMemory, TagsComeBack) {
  run_everywhere([](comm::Communicator& c) {
    std::vector<int> x(1000, 1);
    for (int k = 0; k < 200; ++k) {
      RemoteMemory memory(c, 4000);
      memory.plan_put({.rank = (c.rank() + 1) % c.size(), .data = raw(x)})->run();
      c.barrier();
    }
    EXPECT_LE(c.channels().taken(), 200u) << "three numbers each";
  });
}

// A progress thread serves while the program computes.
TEST(RemoteMemory, ProgressThreadsServe) {
  std::atomic<bool> done{false};
  run_apart([&](comm::Communicator& c) {
    const std::vector<int> one(1, comm::Progress::kNoCore);
    if (c.rank() == 0) c.set_progress(std::make_shared<comm::Progress>(one));
    RemoteMemory memory(c, 400'000);
    if (c.rank() == 0) {
      const auto begin = std::chrono::steady_clock::now();
      while (!done && std::chrono::steady_clock::now() - begin < 5min)
        std::this_thread::sleep_for(1ms);  // not a call of the library
      EXPECT_TRUE(done);
    } else {
      std::vector<float> x(100'000, 2);
      memory.plan_accumulate({.data = raw(x)})->run();
      memory.plan_get({.data = raw(x)})->run();
      EXPECT_EQ(x[99'999], 2);
      done = true;
    }
    c.barrier();
  });
}

// Requests of a rank with wrong assumptions about its target.
TEST(RemoteRequest, ATargetChecksWhatItIsAskedFor) {
  using remote::refusal_of;
  const remote::Request good{
      .offset = 8, .bytes = 8, .access = Access::accumulate, .element = comm::Element::f64};
  EXPECT_EQ(refusal_of(good, 16), "");
  EXPECT_NE(refusal_of(good, 15), "");
  for (const auto& wrong :
       {remote::Request{.offset = UINT64_MAX, .bytes = 8}, remote::Request{.bytes = UINT64_MAX},
        remote::Request{.access = Access{9}}, remote::Request{.element = comm::Element{77}},
        remote::Request{.op = comm::ReduceOp{9}}})
    EXPECT_NE(refusal_of(wrong, 16), "");
  const auto refusal = [](uint64_t offset, uint64_t bytes, comm::Element element) {
    return refusal_of(
        {.offset = offset, .bytes = bytes, .access = Access::accumulate, .element = element}, 16);
  };
  EXPECT_TRUE(has_text(refusal(2, 4, comm::Element::f32), "offsets are multiples of 4"));
  EXPECT_TRUE(
      has_text(refusal(4, 2, comm::Element::f32), "2 bytes are not whole elements of 4 bytes"));
  EXPECT_TRUE(has_text(refusal(0, 1, comm::Element::byte), "bytes have no arithmetic"));
}

TEST(RemoteAccess, OtherDataForLaterStarts) {
  run_near_and_apart([](comm::Communicator& c) {
    RemoteMemory memory(c, 64);
    std::vector<std::byte> a(8, std::byte{1}), b(12, std::byte{2}), all(12), large(61);
    const auto put = memory.plan_put({.rank = 1 - c.rank(), .offset = 4, .data = a});
    for (auto* data : {&a, &b}) {
      put->rebind(*data);
      put->run();
    }
    EXPECT_THROW(put->rebind(large), comm::PlanError);
    memory.plan_get({.rank = 1 - c.rank(), .offset = 4, .data = all})->run();
    EXPECT_EQ(all, b);
    c.barrier();
  });
}

TEST(RemoteAccess, ATargetThatServesNobodyIsATimeOutThatNamesIt) {
  EXPECT_TRUE(throws<CommError>({"put number 1: no answer within ", "not arrived: rank 0 on"}, [&] {
    run_apart([](comm::Communicator& c) {
      RemoteMemory memory(c, 64);
      if (c.rank() == 1) {
        c.set_timeout(patience(0.2));
        memory.plan_put({.data = memory.data()})->run();
      } else {
        sleep_patiently(2);
      }
    });
  }));
}

TEST(RemoteAccess, APatientRequestAndAWaitForWorkOutlastTheTimeOut) {
  run_apart([](comm::Communicator& c) {
    RemoteMemory memory(c, 64);
    c.set_timeout(patience(0.05));
    if (c.rank() == 0) {
      sleep_patiently(0.4);
      memory.wait_for_accumulates(1, std::vector<int>{1});
    } else {
      memory.plan_put({.data = memory.data(), .patient = true})->run();
      sleep_patiently(0.4);
      memory.plan_accumulate({.data = memory.data()})->run();
    }
    c.set_timeout(kHangSeconds);
    c.barrier();
  });
}

// A rank polls another operation than the one that others request of it.
TEST(RemoteAccess, ARankThatOnlyTestsServesTheOthers) {
  run_near_and_apart([](comm::Communicator& c) {
    c.set_timeout(kHangSeconds);
    RemoteMemory memory(c, 64);
    std::vector<std::byte> one(4);
    std::vector<std::byte> word(1);
    if (c.rank() == 1) {
      memory.plan_accumulate({.data = one})->run();
      const auto tell = c.plan_send({.peer = 0, .data = word});
      tell->run();
    } else {
      const auto hear = c.plan_receive({.peer = 1, .data = word});
      hear->start();
      while (!hear->test()) std::this_thread::yield();
      EXPECT_EQ(memory.accumulates(), 1u);
    }
    c.barrier();
  });
}

// The pacer would otherwise keep a pointer to a destroyed flow.
TEST(RemoteTransfer, OneThatCannotBeginLeavesThePacer) {
  comm::Pacer pacer;
  comm::Pacer::Flow other;
  pacer.enter(other, 0);
  std::vector<std::byte> data(10);
  alignas(remote::Transfer) std::array<std::byte, sizeof(remote::Transfer)> place;
  EXPECT_THROW(
      new (place.data()) remote::Transfer(
          remote::Transfer::Way::send, data,
          {.messages = []() -> std::unique_ptr<comm::Wire::Messages> { throw CommError("no"); }},
          pacer, 1),
      CommError);
  EXPECT_TRUE(pacer.may_begin(other)) << "it waits for one that is more urgent and gone";
  pacer.leave(other);
}

// The answer to a request that was given up would be taken for the next one's.
TEST(RemoteAccess, NothingFollowsOneThatWasGivenUpUnderWay) {
  std::atomic<bool> serves{false};
  run_apart([&](comm::Communicator& c) {
    RemoteMemory memory(c, 64);
    if (c.rank() == 1) {
      auto put = memory.plan_put({.rank = 0, .data = memory.data()});
      put->start();
      put.reset();
      EXPECT_THROW(memory.plan_get({.data = memory.data()})->run(), CommError);
      const auto second = memory.plan_get({.rank = 0, .data = memory.data()});
      const auto third = memory.plan_get({.rank = 0, .data = memory.data()});
      EXPECT_THROW(second->start(), CommError);
      EXPECT_THROW(third->start(), CommError) << "it waits for the second";
      serves = true;
    }
    while (!serves) std::this_thread::yield();
    c.barrier();
  });
}

// Rank 0 serves; rank 3 is killed while it adds a large vector. Rank 0 gets an error, and goes on
// serving the other two, whose sums are whole; rank 3's addition is there whole or not at all.
void serve_around_a_killed_rank(bool shared_memory) {
  constexpr int kPushes = 20, kVictim = 3;
  constexpr size_t kCount = 1'000'000;
  const std::vector<int> codes = comm::run_processes(4, [&](int p, comm::Store& store) {
    const auto c =
        comm::make_store_communicator(store, "job", p, 4, comm::options_with(shared_memory));
    RemoteMemory memory(*c, p == 0 ? kCount * sizeof(double) : 0);
    std::vector<double> x(kCount, p == kVictim ? 1000 : p);
    const auto push = memory.plan_accumulate(
        {.rank = 0, .data = std::as_writable_bytes(std::span(x)), .element = comm::Element::f64});
    if (p == kVictim) {
      push->start();
      for (int i = 0; i < 3; ++i) push->test();
      kill(getpid(), SIGKILL);
    }
    if (p > 0) {
      for (int i = 0; i < kPushes; ++i) push->run();
      return store.get("served", kHangSeconds) ? 0 : 4;
    }
    std::vector<int> from{1, 2, kVictim};
    const std::string lost =
        message_of<CommError>([&] { memory.wait_for_accumulates(1000, from); });
    if (lost.find("rank 3 on") == std::string::npos) return 2;
    from.pop_back();
    memory.wait_for_accumulates(2 * kPushes, from);
    std::vector<double> sum(kCount);
    do memory.plan_get({.data = std::as_writable_bytes(std::span(sum))})->run();
    while (std::fmod(sum[0], 1000) != 3 * kPushes);
    for (const double value : sum)
      if (value != sum[0]) return 3;
    store.set("served", "yes");
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 128 + SIGKILL}));
}

TEST(RemoteProcesses, AServerGoesOnAfterOneOfItsOriginsIsKilled) {
  for (const bool shared_memory : {false, true}) serve_around_a_killed_rank(shared_memory);
}

TEST(RemoteProcesses, AKilledTargetIsNamed) {
  const std::vector<int> codes = comm::run_processes(2, [&](int p, comm::Store& store) {
    const auto c = comm::make_store_communicator(store, "job", p, 2, comm::options_with(false));
    RemoteMemory memory(*c, 64);
    if (p == 0) kill(getpid(), SIGKILL);
    const auto put = memory.plan_put({.data = memory.data()});
    return throws<CommError>({"put number ", ": rank 0 on"},
                             [&] {
                               for (;;) put->run();
                             })
               ? 0
               : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{128 + SIGKILL, 0}));
}

}  // namespace
}  // namespace tutti::capi
