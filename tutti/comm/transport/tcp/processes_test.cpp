// Ranks as processes that this test starts, over a store that it serves.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/bootstrap/tcp_store.h"
#include "tutti/comm/remote/remote_memory.h"
#include "tutti/comm/transport/tcp/store_communicator.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {
namespace {

using RankOfJob = std::function<int(int rank, Store& store)>;

// Starts the ranks before this process has a thread, and then the store. Returns their exit codes;
// for a process that a signal ended, 128 plus the signal.
std::vector<int> run_processes(int size, const RankOfJob& rank) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  std::vector<pid_t> processes;
  for (int p = 0; p < size; ++p) {
    const pid_t process = fork();
    if (process == 0) {
      int port = 0;
      if (read(pipe[0], &port, sizeof port) != sizeof port) _exit(99);
      int code = 98;
      try {
        TcpStore store("127.0.0.1", port, "secret", kHangSeconds);
        code = rank(p, store);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      std::fflush(nullptr);
      _exit(code);
    }
    processes.push_back(process);
  }
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  const int port = server.port();
  for (int p = 0; p < size; ++p)
    EXPECT_EQ(write(pipe[1], &port, sizeof port), ssize_t{sizeof port});
  std::vector<int> codes;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(pipe[0]);
  close(pipe[1]);
  return codes;
}

StoreOptions options_with(bool shared_memory) {
  return {
      .process = {.shared_memory = shared_memory, .timeout = kHangSeconds, .address = "127.0.0.1"},
      .secret = "secret"};
}

bool sums_are_right(Communicator& c, size_t count) {
  std::vector<double> x(count);
  const auto sum = c.plan(
      {.kind = Collective::allreduce, .element = Element::f64, .count = count, .output = x.data()});
  for (int round = 0; round < 5; ++round) {
    std::ranges::fill(x, c.rank() + 1);
    sum->start();
    sum->wait();
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
                    sum->start();
                    sum->wait();
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
    sum->start();
    sum->wait();
    if (p == kVictim) {
      sum->start();
      kill(getpid(), SIGKILL);
    }
    try {
      for (int i = 0; i < 3; ++i) {
        sum->start();
        sum->wait();
      }
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
    auto board = std::make_shared<tcp::Switchboard>(
        store, "job", p, 2, tcp::Switchboard::Options{.secret = "s", .address = "127.0.0.1"});
    TcpWire wire(std::move(board), p, 2);
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
    auto board = std::make_shared<tcp::Switchboard>(
        store, "job", p, 2, tcp::Switchboard::Options{.secret = "s", .address = "127.0.0.1"});
    TcpWire wire(std::move(board), p, 2);
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

// Rank 0 serves; rank 3 is killed while it adds a large vector. Rank 0 gets an error, and goes on
// serving the other two, whose sums are whole; rank 3's addition is there whole or not at all.
void serve_around_a_killed_rank(bool shared_memory) {
  constexpr int kPushes = 20, kVictim = 3;
  constexpr size_t kCount = 1'000'000;
  const std::vector<int> codes = run_processes(4, [&](int p, Store& store) {
    const auto c = make_store_communicator(store, "job", p, 4, options_with(shared_memory));
    const auto memory = c->expose(p == 0 ? kCount * sizeof(double) : 0);
    std::vector<double> x(kCount, p == kVictim ? 1000 : p);
    const auto push = memory->plan_accumulate(
        {.rank = 0, .data = std::as_writable_bytes(std::span(x)), .element = Element::f64});
    if (p == kVictim) {
      push->start();
      for (int i = 0; i < 3; ++i) push->test();
      kill(getpid(), SIGKILL);
    }
    if (p > 0) {
      for (int i = 0; i < kPushes; ++i) {
        push->start();
        push->wait();
      }
      return store.get("served", kHangSeconds) ? 0 : 4;
    }
    std::vector<int> from{1, 2, kVictim};
    const std::string lost =
        message_of<CommError>([&] { memory->wait_for_accumulates(1000, from); });
    if (lost.find("rank 3 on") == std::string::npos) return 2;
    from.pop_back();
    memory->wait_for_accumulates(2 * kPushes, from);
    std::vector<double> sum(kCount);
    do memory->get(0, 0, std::as_writable_bytes(std::span(sum)));
    while (std::fmod(sum[0], 1000) != 3 * kPushes);
    for (const double value : sum)
      if (value != sum[0]) return 3;
    store.set("served", "yes");
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 128 + SIGKILL}));
}

TEST(StoreProcesses, AServerGoesOnAfterOneOfItsOriginsIsKilled) {
  for (const bool shared_memory : {false, true}) serve_around_a_killed_rank(shared_memory);
}

TEST(StoreProcesses, AKilledTargetIsNamed) {
  const std::vector<int> codes = run_processes(2, [&](int p, Store& store) {
    const auto c = make_store_communicator(store, "job", p, 2, options_with(false));
    const auto memory = c->expose(64);
    if (p == 0) kill(getpid(), SIGKILL);
    try {
      for (;;) memory->put(0, 0, memory->data());
    } catch (const CommError& error) {
      const std::string text = error.what();
      return text.find("put number 1: rank 0 on") != std::string::npos ? 0 : 1;
    }
  });
  EXPECT_EQ(codes, (std::vector<int>{128 + SIGKILL, 0}));
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
