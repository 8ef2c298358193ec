#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/tcp/run_processes.h"
#include "tutti/comm/transport/tcp/store_communicator.h"
#include "tutti/comm/transport/tcp/wire_of_two.h"

namespace tutti::comm {
namespace {

bool sums_are_right(Communicator& c, size_t count) {
  std::vector<double> x(count);
  const auto sum = c.plan(
      {.kind = Collective::allreduce, .element = Element::f64, .count = count, .output = x.data()});
  for (int round = 0; round < 5; ++round) {
    std::ranges::fill(x, c.rank() + 1);
    sum->run();
    for (const double value : x)
      if (value != c.size() * (c.size() + 1) / 2) return false;
  }
  return true;
}

TEST(StoreProcesses, Sums) {
  for (const bool shared_memory : {false, true})
    EXPECT_EQ(run_processes(3,
                            [&](int p, Store& store) {
                              const auto c = make_store_communicator(store, "job", p, 3,
                                                                     options_with(shared_memory));
                              return sums_are_right(*c, 10) && sums_are_right(*c, 200000) ? 0 : 1;
                            }),
              std::vector<int>(3, 0));
}

// A window often lies at the same address as the previous one. It is another one all the same.
TEST(StoreProcesses, BuffersThatMoveToAnotherWindowAtTheSameAddress) {
  EXPECT_EQ(run_processes(
                2,
                [&](int p, Store& store) {
                  constexpr size_t kCount = 1 << 18;
                  const auto c = make_store_communicator(store, "job", p, 2, options_with(true));
                  const auto sum =
                      c->plan({.kind = Collective::allreduce, .count = kCount, .rebindable = true});
                  const std::byte* before = nullptr;
                  int again = 0;
                  for (int round = 0; round < 10; ++round) {
                    const auto window = c->allocate(kCount * sizeof(float));
                    again += window->data() == std::exchange(before, window->data());
                    auto* const x = reinterpret_cast<float*>(window->data());
                    std::fill_n(x, kCount, static_cast<float>(p + round));
                    sum->rebind(nullptr, x);
                    sum->run();
                    for (size_t i = 0; i < kCount; ++i)
                      if (x[i] != static_cast<float>(1 + 2 * round)) return 1;
                  }
                  return again > 0 ? 0 : 2;
                }),
            std::vector<int>(2, 0));
}

// One rank is killed in an allreduce; the others catch the error, make a communicator among
// themselves over the same store, and go on.
void kill_and_go_on(bool shared_memory) {
  constexpr int kRanks = 4, kVictim = 2;
  const std::vector<int> codes = run_processes(kRanks, [&](int p, Store& store) {
    auto c = make_store_communicator(store, "before", p, kRanks, options_with(shared_memory));
    std::vector<float> x(50000);
    auto sum = c->plan({.kind = Collective::allreduce, .count = x.size(), .output = x.data()});
    sum->run();
    if (p == kVictim) {
      sum->start();
      kill(getpid(), SIGKILL);
    }
    try {
      for (int i = 0; i < 3; ++i) sum->run();
      return 2;
    } catch (const CommError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      if (std::string(error.what()).find("no answer within") != std::string::npos) return 3;
    }
    sum.reset();
    c.reset();
    const auto left = make_store_communicator(store, "after", p < kVictim ? p : p - 1, kRanks - 1,
                                              options_with(shared_memory));
    return sums_are_right(*left, 10) && sums_are_right(*left, 200000) ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 128 + SIGKILL, 0}));
}

TEST(StoreProcesses, SurvivorsOfAKilledRankGoOnOverTcp) { kill_and_go_on(false); }
TEST(StoreProcesses, SurvivorsOfAKilledRankGoOnWithSharedMemory) { kill_and_go_on(true); }

// Where processes cannot be checked, as on other nodes, the wire finds a dead rank by a connection
// that ends, or that no rank accepts.
void find_dead_rank(bool connected, const std::string& how) {
  const std::vector<int> codes = run_processes(2, [&](int p, Store& store) {
    TcpWire wire = wire_of_two(store, p);
    char text = 'x';
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    if (p == 1) {
      const auto message = wire.messages();
      if (connected) message->send_taken(&text, 1, 0, 20);
      while (connected && !message->test() && std::chrono::steady_clock::now() < until) {}
      kill(getpid(), SIGKILL);
    }
    const auto message = wire.messages();
    if (connected) message->receive(&text, 1, 1, 20);
    while (connected && !message->test() && std::chrono::steady_clock::now() < until) {}
    std::string lost;
    const auto nothing = wire.messages();
    nothing->receive(&text, 1, 1, 20);
    while (lost.empty() && std::chrono::steady_clock::now() < until) {
      nothing->test();
      lost = wire.lost(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::fprintf(stderr, "%s\n", lost.c_str());
    return lost.find(how) != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 128 + SIGKILL}));
}

TEST(StoreProcesses, TheEndOfAConnectionIsTheEndOfItsRank) { find_dead_rank(true, "connection"); }
TEST(StoreProcesses, ARankThatAnswersNobodyIsGone) {
  find_dead_rank(false, "nobody of this group answers");
}

// A stopped rank is late, not lost.
TEST(StoreProcesses, AStoppedRankIsNotLost) {
  const std::vector<int> codes = run_processes(2, [&](int p, Store& store) {
    TcpWire wire = wire_of_two(store, p);
    int32_t process = getpid();
    if (p == 1) {
      store.set("process", std::to_string(process));
      raise(SIGSTOP);
    } else {
      process = std::stoi(store.get("process", kHangSeconds).value());
      const auto begin = std::chrono::steady_clock::now();
      for (auto now = begin; now - begin < std::chrono::milliseconds(1500);
           now = std::chrono::steady_clock::now()) {
        wire.messages()->test();
        if (!wire.lost(1).empty()) return 2;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      kill(process, SIGCONT);
    }
    int all = p;
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    const auto message = wire.messages();
    p == 0 ? message->send_taken(&all, sizeof all, 1, 20)
           : message->receive(&all, sizeof all, 0, 20);
    while (!message->test())
      if (std::chrono::steady_clock::now() > until) return 3;
    return all == 0 ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(StoreProcesses, AbortTellsTheOthers) {
  const std::vector<int> codes = run_processes(3, [&](int p, Store& store) {
    const auto c = make_store_communicator(store, "job", p, 3, options_with(false));
    if (p == 1) c->abort(7, "enough");
    try {
      c->barrier();
      c->barrier();
    } catch (const CommError&) {
      return 5;
    }
    return 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{5, 7, 5}));
}

}  // namespace
}  // namespace tutti::comm
