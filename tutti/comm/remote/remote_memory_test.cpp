#include "tutti/comm/remote/remote_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/remote/service.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti::comm {
namespace {

using namespace std::chrono_literals;
using Body = std::function<void(Communicator&)>;

// Runs ranks as threads, each with connections of its own. Returns their errors, by rank.
std::vector<std::string> run_with_connections(int ranks, const Body& body) {
  LocalStore store;
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < ranks; ++p)
      threads.emplace_back([&, p] {
        try {
          const auto c = make_store_communicator(
              store, "remote", p, ranks,
              {.process = {.shared_memory = false, .timeout = kHangSeconds, .address = "127.0.0.1"},
               .secret = "s"});
          body(*c);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(p)] = error.what();
        }
      });
  }
  return errors;
}

// On one node, on nodes of different sizes, and over TCP.
void run_everywhere(const Body& body) {
  run_ranks(3, body);
  run_ranks(3, body, {0, 0, 1});
  for (const std::string& error : run_with_connections(3, body)) EXPECT_EQ(error, "");
}

template <class T>
std::span<std::byte> raw(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}
template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// No data, data that go with the request, a piece, and several pieces.
const std::vector<size_t> kCounts{0, 1, 7, 200, 5000, 300'000};

TEST(RemoteMemory, GetsWhatWasPut) {
  run_everywhere([](Communicator& c) {
    constexpr size_t kRoom = 300'000;
    const auto memory = c.expose(kRoom * sizeof(int) * static_cast<size_t>(c.size()) +
                                 static_cast<size_t>(c.rank()));
    for (int p = 0; p < c.size(); ++p)
      EXPECT_EQ(memory->bytes(p), kRoom * sizeof(int) * 3 + static_cast<size_t>(p));
    for (const size_t count : kCounts) {
      // Each rank writes its own part of every rank's memory and reads it back.
      std::vector<int> out(count), in(count, -1);
      for (int target = 0; target < c.size(); ++target) {
        std::iota(out.begin(), out.end(), 1000 * c.rank() + target);
        const size_t offset = static_cast<size_t>(c.rank()) * kRoom * sizeof(int);
        memory->put(target, offset, raw(out));
        memory->get(target, offset, raw(in));
        ASSERT_EQ(in, out) << count << " to rank " << target;
      }
      c.barrier();
      for (int origin = 0; origin < c.size(); ++origin)
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(as<int>(memory->data())[static_cast<size_t>(origin) * kRoom + i],
                    1000 * origin + c.rank() + static_cast<int>(i));
      c.barrier();
    }
  });
}

TEST(RemoteMemory, NoAccumulateIsLost) {
  run_everywhere([](Communicator& c) {
    for (const size_t count : kCounts) {
      const auto memory = c.expose(count * sizeof(int64_t));
      std::vector<int64_t> mine(count, c.rank() + 1);
      std::vector<std::unique_ptr<RemoteAccess>> all;
      for (int target = 0; target < c.size(); ++target)
        all.push_back(
            memory->plan_accumulate({.rank = target, .data = raw(mine), .element = Element::i64}));
      constexpr int kRounds = 5;
      for (int round = 0; round < kRounds; ++round) {
        for (const auto& one : all) one->start();
        for (const auto& one : all) one->wait();
      }
      c.barrier();
      EXPECT_EQ(memory->accumulates(), static_cast<uint64_t>(kRounds * c.size()));
      for (const int64_t value : as<int64_t>(memory->data())) ASSERT_EQ(value, 6 * kRounds);
      c.barrier();
    }
  });
}

template <class T>
void expect_all(std::span<std::byte> memory, T value) {
  for (const T found : as<T>(memory)) ASSERT_EQ(found, value);
}

TEST(RemoteMemory, EveryTypeAndOperation) {
  run_everywhere([](Communicator& c) {
    const auto memory = c.expose(64);
    const auto apply = [&](Element element, ReduceOp op, auto first, auto value) {
      using T = decltype(first);
      std::ranges::fill(as<T>(memory->data()), first);
      c.barrier();
      std::vector<T> mine(64 / sizeof(T), static_cast<T>(value));
      memory->accumulate((c.rank() + 1) % c.size(), 0, raw(mine), element, op);
      c.barrier();
    };
    apply(Element::f32, ReduceOp::sum, 1.5f, 2);
    expect_all(memory->data(), 3.5f);
    apply(Element::f64, ReduceOp::product, 1.5, 2);
    expect_all(memory->data(), 3.0);
    apply(Element::i32, ReduceOp::max, int32_t{-5}, 3);
    expect_all(memory->data(), int32_t{3});
    apply(Element::u8, ReduceOp::min, uint8_t{200}, 3);
    expect_all(memory->data(), uint8_t{3});
    c.barrier();
  });
}

// Every ticket of a counter is given out once, and is the number of those before.
TEST(RemoteMemory, FetchesAreOneAfterAnother) {
  run_everywhere([](Communicator& c) {
    constexpr int kEach = 50;
    const auto memory = c.expose(c.rank() == 1 ? sizeof(int64_t) : 0);
    std::vector<int64_t> tickets;
    for (int k = 0; k < kEach; ++k) {
      std::vector<int64_t> one{1};
      memory->fetch(1, 0, raw(one), Element::i64);
      if (!tickets.empty()) {
        EXPECT_GT(one[0], tickets.back());
      }
      tickets.push_back(one[0]);
    }
    std::vector<int64_t> given(3 * kEach, 0);
    for (const int64_t ticket : tickets) given.at(static_cast<size_t>(ticket)) = 1;
    const auto sum = c.plan({.kind = Collective::allreduce,
                             .element = Element::i64,
                             .count = given.size(),
                             .output = given.data()});
    sum->start();
    sum->wait();
    EXPECT_EQ(given, std::vector<int64_t>(3 * kEach, 1));
  });
}

// An atomic get never sees half of an accumulate of several pieces.
TEST(RemoteMemory, AtomicGetsSeeWholeAccumulates) {
  run_everywhere([](Communicator& c) {
    constexpr size_t kCount = 100'000;
    const auto memory = c.expose(kCount * sizeof(float));
    std::vector<float> ones(kCount, 1), seen(kCount);
    const auto add = memory->plan_accumulate({.rank = 0, .data = raw(ones)});
    const auto look = memory->plan_get({.rank = 0, .data = raw(seen), .atomic = true});
    for (int k = 0; k < 20; ++k) {
      const auto& mine = c.rank() == 1 ? add : look;
      mine->start();
      mine->wait();
      if (c.rank() != 1) {
        ASSERT_EQ(std::ranges::count(seen, seen[0]), std::ssize(seen)) << "in the midst of one";
      }
    }
    c.barrier();
  });
}

// Workers pull weights, push gradients and are never more than a bound ahead of the slowest; the
// server waits for work without a time-out, and applies all pushes.
TEST(RemoteMemory, ServesWorkers) {
  constexpr int kSteps = 12;
  constexpr int64_t kBound = 2;
  run_everywhere([](Communicator& c) {
    constexpr size_t kWeights = 3000;
    const auto weights = c.expose(c.rank() == 0 ? kWeights * sizeof(float) : 0);
    const auto clocks = c.expose(c.rank() == 0 ? 2 * sizeof(int64_t) : 0);
    if (c.rank() == 0) {
      c.set_timeout(patience(0.3));  // for answers; work may be longer in coming
      const std::vector<int> workers{1, 2};
      weights->wait_for_accumulates(2 * kSteps, workers);
      expect_all(weights->data(), static_cast<float>(2 * kSteps));
    } else {
      std::vector<float> mine(kWeights), gradient(kWeights, 1);
      std::vector<int64_t> clock{1}, all(2);
      const auto worker = static_cast<size_t>(c.rank() - 1);
      // Others push meanwhile: an atomic get reads nothing that is half written.
      const auto pull = weights->plan_get({.rank = 0, .data = raw(mine), .atomic = true});
      const auto look = clocks->plan_get({.rank = 0, .data = raw(all), .atomic = true});
      const auto run = [](RemoteAccess& access) {
        access.start();
        access.wait();
      };
      for (int step = 0; step < kSteps; ++step) {
        if (step == 3 && c.rank() == 2) sleep_patiently(0.5);
        do run(*look);
        while (step - all[1 - worker] > kBound);
        run(*pull);
        // Only the last steps of the other worker are missing, at most as many as the bound.
        EXPECT_GE(mine[0], static_cast<float>(step + std::max(int64_t{0}, step - kBound)));
        expect_all(std::as_writable_bytes(std::span(mine)), mine[0]);
        weights->accumulate(0, 0, raw(gradient), Element::f32);
        clocks->accumulate(0, worker * sizeof(int64_t), raw(clock), Element::i64);
      }
    }
    c.set_timeout(kHangSeconds);
    c.barrier();
  });
}

// The memory of a server is bounded by slots and kRoom, for any number and size of requests.
TEST(RemoteMemory, AServerKeepsABoundedAmount) {
  constexpr int kRanks = 12;
  std::vector<int> apart(kRanks);
  std::iota(apart.begin(), apart.end(), 0);
  run_ranks(
      kRanks,
      [](Communicator& c) {
        constexpr size_t kCount = size_t{2} << 20;  // 8 MiB each: almost three times kRoom together
        const auto memory = c.expose(c.rank() == 0 ? kCount * sizeof(float) : 0);
        if (c.rank() > 0) {
          std::vector<float> x(kCount, 1);
          memory->accumulate(0, 0, raw(x), Element::f32);
        } else {
          std::vector<int> all(kRanks - 1);
          std::iota(all.begin(), all.end(), 1);
          memory->wait_for_accumulates(kRanks - 1, all);
          expect_all(memory->data(), static_cast<float>(kRanks - 1));
          EXPECT_LE(memory->taken().requests, remote::Service::kSlots);
          EXPECT_LE(memory->taken().bytes, remote::Service::kRoom);
          EXPECT_GT(memory->taken().bytes, 0u);
        }
        c.barrier();
      },
      apart);
}

TEST(RemoteMemory, WhatCannotBeIsRefusedByTheCaller) {
  run_everywhere([](Communicator& c) {
    const auto memory = c.expose(100);
    std::vector<float> x(10);
    std::vector<std::byte> b(40);
    const auto refused = [&](RemoteSpec spec, const char* why) {
      EXPECT_TRUE(throws<CommError>({why}, [&] { memory->plan_accumulate(spec); })) << why;
    };
    refused({.rank = 3, .data = raw(x)}, "there is no rank 3");
    refused({.rank = -1, .data = raw(x)}, "there is no rank -1");
    refused({.rank = 1, .offset = 64, .data = raw(x)},
            "40 bytes from byte 64 on are not in the 100");
    refused({.rank = 1, .offset = SIZE_MAX - 8, .data = raw(x)}, "are not in the 100 bytes");
    refused({.rank = 1, .offset = 2, .data = raw(x)}, "offsets are multiples of 4");
    refused({.rank = 1, .data = raw(x), .op = ReduceOp::mean}, "no mean");
    refused({.rank = 1, .data = b, .element = Element::byte}, "bytes have no arithmetic");
    memory->put((c.rank() + 1) % c.size(), 60, raw(x));  // the memory is still usable
    c.barrier();
  });
}

TEST(RemoteMemory, NothingIsAppliedWhileTheOwnerHoldsIt) {
  run_everywhere([](Communicator& c) {
    const auto memory = c.expose(sizeof(int32_t) * 4);
    std::vector<int32_t> one(4, 1);
    if (c.rank() == 0) {
      const auto hold = memory->hold();
      c.barrier();  // no request comes before the memory is held
      for (const auto end = std::chrono::steady_clock::now() + 50ms;
           std::chrono::steady_clock::now() < end;)
        c.progress();  // long enough for the requests to arrive
      expect_all(memory->data(), int32_t{0});
    } else {
      c.barrier();
      memory->accumulate(0, 0, raw(one), Element::i32);
    }
    c.barrier();
    if (c.rank() == 0) expect_all(memory->data(), int32_t{2});
    c.barrier();
  });
}

TEST(RemoteMemory, RequestsToOneTargetKeepTheirOrder) {
  run_everywhere([](Communicator& c) {
    constexpr size_t kCount = 70'000;
    const auto memory = c.expose(kCount * sizeof(int));
    const int target = (c.rank() + 1) % c.size();
    std::vector<std::vector<int>> data;
    std::vector<std::unique_ptr<RemoteAccess>> puts;
    for (int k = 0; k < 6; ++k) {
      data.emplace_back(k % 2 == 0 ? kCount : 10, k);
      puts.push_back(memory->plan_put({.rank = target, .data = raw(data.back())}));
    }
    for (const auto& put : puts) put->start();
    for (const auto& put : puts) put->wait();
    c.barrier();
    const auto found = as<int>(memory->data());
    EXPECT_EQ(found[9], 5);
    EXPECT_EQ(found[10], 4);
    EXPECT_EQ(found[kCount - 1], 4);
    c.barrier();
  });
}

TEST(RemoteMemory, TagsComeBack) {
  run_everywhere([](Communicator& c) {
    std::vector<int> x(1000, 1);
    for (int k = 0; k < 200; ++k) {
      const auto memory = c.expose(4000);
      memory->put((c.rank() + 1) % c.size(), 0, raw(x));
      c.barrier();
    }
    EXPECT_LE(c.channels().taken(), 200u) << "three numbers each";
  });
}

// A progress thread serves while the program computes.
TEST(RemoteMemory, ProgressThreadsServe) {
  std::atomic<bool> done{false};
  run_ranks(2,
            [&](Communicator& c) {
              const std::vector<int> one(1, Progress::kNoCore);
              if (c.rank() == 0) c.set_progress(std::make_shared<comm::Progress>(one));
              const auto memory = c.expose(400'000);
              if (c.rank() == 0) {
                const auto begin = std::chrono::steady_clock::now();
                while (!done && std::chrono::steady_clock::now() - begin < 5min)
                  std::this_thread::sleep_for(1ms);  // not a call of the library
                EXPECT_TRUE(done);
              } else {
                std::vector<float> x(100'000, 2);
                memory->accumulate(0, 0, raw(x), Element::f32);
                memory->get(0, 0, raw(x));
                EXPECT_EQ(x[99'999], 2);
                done = true;
              }
              c.barrier();
            },
            {0, 1});
}

// Over connections of their own the others find out at once, and a server may go on.
TEST(RemoteMemory, ALostWorkerIsNamedAndTheOthersAreServed) {
  std::atomic<bool> gone{false};
  const auto errors = run_with_connections(3, [&](Communicator& c) {
    const auto memory = c.expose(c.rank() == 0 ? 40'000 : 0);
    std::vector<float> x(10'000, 1);
    if (c.rank() == 2) {
      memory->accumulate(0, 0, raw(x), Element::f32);
      throw InternalError("lost");
    }
    if (c.rank() == 1) {
      while (!gone) std::this_thread::sleep_for(1ms);
      memory->accumulate(0, 0, raw(x), Element::f32);
      return;
    }
    const std::vector<int> both{1, 2}, left{1};
    EXPECT_TRUE(
        throws<CommError>({"rank 2", "is gone"}, [&] { memory->wait_for_accumulates(3, both); }));
    gone = true;
    memory->wait_for_accumulates(2, left);
    expect_all(memory->data(), 2.0f);
  });
  EXPECT_EQ(errors[0] + errors[1], "");
  EXPECT_TRUE(has_text(errors[2], "lost"));
}

}  // namespace
}  // namespace tutti::comm
