// Ranks as threads of one process, each with connections of its own.
#include "tutti/comm/transport/tcp/store_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/home.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {
namespace {

using namespace std::chrono_literals;

// Runs `rank` as so many threads; what they throw, by rank.
std::vector<std::string> run_threads(int size, const std::function<void(int)>& rank) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < size; ++p)
      threads.emplace_back([&, p] {
        try {
          rank(p);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(p)] = error.what();
        }
      });
  }
  return errors;
}

StoreOptions over_tcp(double timeout = 30) {
  return {.process = {.shared_memory = false, .timeout = timeout},
          .secret = "s",
          .address = "127.0.0.1"};
}

void expect_none(const std::vector<std::string>& errors) {
  for (size_t p = 0; p < errors.size(); ++p) EXPECT_EQ(errors[p], "") << "rank " << p;
}

void run_group(int size, const std::function<void(Communicator&)>& work,
               const StoreOptions& options = over_tcp()) {
  LocalStore store;
  expect_none(run_threads(size, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, size, options);
    work(*c);
  }));
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw InternalError("failed: " + what);
}

void check_control(Communicator& c) {
  const auto squares = c.allgather_value(c.rank() * c.rank());
  for (int p = 0; p < c.size(); ++p) expect(squares[static_cast<size_t>(p)] == p * p, "allgather");
  for (int root = 0; root < c.size(); ++root) {
    std::vector<int> data(30000, c.rank() == root ? root + 5 : -1);
    c.broadcast(std::as_writable_bytes(std::span(data)), root);
    expect(data == std::vector<int>(30000, root + 5), "broadcast");
  }
  expect(c.most(c.rank()) == c.size() - 1, "most");
  c.barrier();
}

void check_sums(Communicator& c, size_t count, const std::string& algorithm = {}) {
  std::vector<float> x(count);
  CollectiveSpec spec{.kind = Collective::allreduce, .count = count, .output = x.data()};
  spec.algorithm = algorithm;
  const auto sum = c.plan(spec);
  for (int round = 0; round < 3; ++round) {
    std::iota(x.begin(), x.end(), static_cast<float>(c.rank() + round));
    if (count > 1000) std::ranges::fill(x, static_cast<float>(c.rank() + round));
    sum->start();
    sum->wait();
    float expected = 0;
    for (int p = 0; p < c.size(); ++p) expected += static_cast<float>(p + round);
    for (size_t i = 0; i < count; ++i)
      expect(
          x[i] == (count > 1000 ? expected
                                : expected + static_cast<float>(i) * static_cast<float>(c.size())),
          "allreduce");
  }
}

TEST(StoreCommunicator, OneRank) {
  run_group(1, [](Communicator& c) {
    check_control(c);
    check_sums(c, 100);
  });
}

TEST(StoreCommunicator, ControlMessages) {
  for (const int size : {2, 3, 5}) run_group(size, check_control);
}

TEST(StoreCommunicator, Sums) {
  for (const int size : {2, 3, 4})
    run_group(size, [](Communicator& c) {
      expect(c.transport() == "TCP", "transport");
      for (const size_t count : {1u, 1000u, 70000u, 1000003u}) check_sums(c, count);
      for (const char* algorithm : {"ring", "pairwise", "recursive_doubling"})
        check_sums(c, 5000, algorithm);
    });
}

// All addresses of this host, one of which others connect to.
TEST(StoreCommunicator, WithoutAnAddressOfItsOwn) {
  StoreOptions options = over_tcp();
  options.address.clear();
  run_group(3, check_control, options);
}

TEST(StoreCommunicator, OverIpv6) {
  try {
    listen_on(resolve("::1", 0).front(), 0);
  } catch (const CommError&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  StoreOptions options = over_tcp();
  options.address = "::1";
  run_group(3, check_control, options);
}

TEST(StoreCommunicator, SharedMemoryAmongNeighbours) {
  StoreOptions options = over_tcp();
  options.process.shared_memory = true;
  run_group(
      3,
      [](Communicator& c) {
        expect(c.transport() == "shared memory", "transport");
        check_control(c);
        check_sums(c, 70000);
      },
      options);
}

TEST(StoreCommunicator, TheSecretMayComeFromTheStore) {
  StoreOptions options = over_tcp();
  options.secret.clear();
  run_group(3, check_control, options);
}

TEST(StoreCommunicator, ProgressThreads) {
  run_group(2, [](Communicator& c) {
    c.set_progress(std::make_shared<Progress>(std::vector<int>{Progress::kNoCore}));
    for (int i = 0; i < 3; ++i) check_sums(c, 300000);
  });
}

TEST(StoreCommunicator, Parts) {
  run_group(4, [](Communicator& c) {
    const auto half = c.split(c.rank() % 2, -c.rank());
    const auto again = half->split(0, half->rank());
    check_sums(*half, 5000);
    check_sums(*again, 5000);
    check_sums(c, 5000);
    expect(half->size() == 2 && half->rank() == 1 - c.rank() / 2, "order");
  });
}

TEST(StoreCommunicator, MessagesOfAllSizes) {
  run_group(3, [](Communicator& c) {
    const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
    for (const size_t bytes :
         {size_t{0}, size_t{1}, tcp::kEager, tcp::kEager + 1, tcp::kPiece + 7, size_t{3} << 20}) {
      std::vector<std::byte> out(bytes, static_cast<std::byte>(c.rank() + 1)), in(bytes + 5);
      const auto send = c.plan_send({.peer = next, .tag = 3, .data = out});
      const auto receive = c.plan_receive({.peer = before, .tag = 3, .data = in});
      for (int i = 0; i < 3; ++i) {
        receive->start();
        send->start();
        send->wait();
        receive->wait();
        expect(receive->arrived() == bytes, "length");
        for (size_t k = 0; k < bytes; ++k)
          expect(in[k] == static_cast<std::byte>(before + 1), "content");
      }
    }
  });
}

TEST(StoreCommunicator, SixtyFourMegabytes) {
  run_group(2, [](Communicator& c) {
    std::vector<uint64_t> data(size_t{8} << 20);
    if (c.rank() == 0) std::iota(data.begin(), data.end(), uint64_t{7});
    const auto bytes = std::as_writable_bytes(std::span(data));
    const auto message = c.rank() == 0 ? c.plan_send({.peer = 1, .data = bytes})
                                       : c.plan_receive({.peer = 0, .data = bytes});
    message->start();
    message->wait();
    for (size_t i = 0; i < data.size(); ++i) expect(data[i] == i + 7, "content");
  });
}

// While a long message is on its way, short ones between the same ranks pass.
TEST(StoreCommunicator, ShortMessagesPassLongOnes) {
  LocalStore store;
  expect_none(run_threads(2, [&](int p) {
    auto board = std::make_shared<tcp::Switchboard>(
        store, "job", p, 2, tcp::Switchboard::Options{.secret = "s", .address = "127.0.0.1"});
    TcpWire wire(std::move(board), p, 2);
    std::vector<char> big(size_t{32} << 20, 'b');
    char small = 's';
    const auto long_one = wire.messages(), short_one = wire.messages();
    if (p == 0) {
      long_one->send(big.data(), big.size(), 1, 20);
      short_one->send(&small, 1, 1, 21);
    } else {
      long_one->receive(big.data(), big.size(), 0, 20);
      short_one->receive(&small, 1, 0, 21);
      while (!short_one->test()) std::this_thread::yield();
      expect(!long_one->test(), "the short one is first");
    }
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!(long_one->test() & short_one->test())) {
      expect(std::chrono::steady_clock::now() < until, "in time");
      std::this_thread::yield();
    }
  }));
}

// Far more than the credit, to a receiver that asks for nothing yet; then in another order.
TEST(StoreCommunicator, WhatNobodyAskedForYetIsBoundedAndComes) {
  LocalStore store;
  constexpr int kMessages = 400;
  expect_none(run_threads(2, [&](int p) {
    auto board = std::make_shared<tcp::Switchboard>(
        store, "job", p, 2, tcp::Switchboard::Options{.secret = "s", .address = "127.0.0.1"});
    TcpWire wire(std::move(board), p, 2);
    std::vector<std::vector<int>> data(kMessages, std::vector<int>(2500, -1));
    const auto messages = wire.messages();
    const auto until = std::chrono::steady_clock::now() + 60s;
    const auto wait = [&](Wire::Messages& some) {
      while (!some.test()) {
        expect(std::chrono::steady_clock::now() < until, "in time");
        std::this_thread::yield();
      }
    };
    char go = 0;
    const auto start = wire.messages();
    if (p == 0) {
      for (int i = 0; i < kMessages; ++i) {
        std::ranges::fill(data[static_cast<size_t>(i)], i);
        messages->send(data[static_cast<size_t>(i)].data(), 10000, 1, 20 + i % 7);
      }
      start->send(&go, 1, 1, 1);
      wait(*messages);
      wait(*start);
    } else {
      start->receive(&go, 1, 0, 1);
      wait(*start);
      for (int tag = 6; tag >= 0; --tag)
        for (int i = tag; i < kMessages; i += 7)
          messages->receive(data[static_cast<size_t>(i)].data(), 10000, 0, 20 + tag);
      wait(*messages);
      for (int i = 0; i < kMessages; ++i)
        expect(data[static_cast<size_t>(i)] == std::vector<int>(2500, i), "content and order");
    }
  }));
}

// What an answer allows is sent also when the answers end where a read of them did (4096 bytes, 128
// answers): nobody sends anything afterwards that would take it along.
TEST(StoreCommunicator, AsManyGrantsAsOneReadTakesAreObeyed) {
  LocalStore store;
  const auto wire_of = [&](int p) {
    return TcpWire(
        std::make_shared<tcp::Switchboard>(
            store, "job", p, 2, tcp::Switchboard::Options{.secret = "s", .address = "127.0.0.1"}),
        p, 2);
  };
  TcpWire sender = wire_of(0), receiver = wire_of(1);
  for (const size_t grants : {127, 128, 256}) {
    std::vector<char> out(tcp::kEager + 1, 'x'), in(grants * out.size());
    char last = 0;
    const auto sent = sender.messages(), received = receiver.messages(), end = receiver.messages();
    for (size_t i = 0; i < grants; ++i) sent->send(out.data(), out.size(), 1, 20);
    sent->send(&last, 1, 1, 21);
    const auto until = std::chrono::steady_clock::now() + 20s;
    const auto both = [&](Wire::Messages& wanted) {
      while (!wanted.test()) {
        ASSERT_LT(std::chrono::steady_clock::now(), until) << grants << " grants";
        sent->test();
      }
    };
    end->receive(&last, 1, 0, 21);
    both(*end);  // so all of them have been announced
    for (size_t i = 0; i < grants; ++i)
      received->receive(in.data() + i * out.size(), out.size(), 0, 20);
    std::this_thread::sleep_for(200ms);  // so that all answers are there when the sender reads
    both(*received);
    both(*sent);
    EXPECT_EQ(std::ranges::count(in, 'x'), std::ssize(in));
  }
}

// Messages that are given up at any stage leave those after them whole.
TEST(StoreCommunicator, WithdrawnMessages) {
  run_group(2, [](Communicator& c) {
    const int other = 1 - c.rank();
    for (const size_t bytes : {size_t{10}, tcp::kEager, size_t{4} << 20})
      for (int stage = 0; stage < 3; ++stage) {
        std::vector<std::byte> data(bytes, std::byte{1});
        if (c.rank() == 0) {
          auto gone = c.plan_send({.peer = other, .tag = 5, .data = data});
          gone->start();
          for (int i = 0; i < 50 * stage; ++i) gone->test();
        }
        c.barrier();
        const auto message = c.rank() == 0
                                 ? c.plan_send({.peer = other, .tag = 6, .data = data})
                                 : c.plan_receive({.peer = other, .tag = 6, .data = data});
        if (c.rank() == 1) {
          auto nothing = c.plan_receive({.peer = other, .tag = 7, .data = data});
          nothing->start();
          nothing->test();
        }
        message->start();
        message->wait();
        c.barrier();
      }
  });
}

TEST(StoreCommunicator, OtherSizesAreNamed) {
  LocalStore store;
  const auto errors = run_threads(2, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, 2, over_tcp(5));
    std::vector<std::byte> data(p == 0 ? 40000 : 20000);
    const auto message = p == 0 ? c->plan_send({.peer = 1, .data = data})
                                : c->plan_receive({.peer = 0, .data = data});
    message->start();
    message->wait();
  });
  EXPECT_NE(errors[1].find("sent 40000 bytes where 20000 were expected"), std::string::npos)
      << errors[1];
}

TEST(StoreCommunicator, ALateRankIsWaitedFor) {
  LocalStore store;
  expect_none(run_threads(3, [&](int p) {
    if (p == 2) std::this_thread::sleep_for(800ms);
    const auto c = make_store_communicator(store, "job", p, 3, over_tcp());
    check_sums(*c, 100);
  }));
}

TEST(StoreCommunicator, ARankThatNeverComesIsNamed) {
  LocalStore store;
  const auto errors = run_threads(3, [&](int p) {
    if (p < 2) make_store_communicator(store, "job", p, 3, over_tcp(1));
  });
  EXPECT_NE(errors[0].find("not arrived: rank 2"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1], "");
}

// As one whose server is stopped: every question lasts its time-out, with all messages waiting.
TEST(StoreCommunicator, AStoreThatHasFailedIsNotAskedAgain) {
  class Silent final : public Store {
   public:
    void set(const std::string&, const std::string&) override { stopped = true; }
    std::optional<std::string> get(const std::string&, double) override {
      if (!stopped) return std::nullopt;  // nobody has been this rank before
      ++asked;
      throw CommError("the store has not answered");
    }
    bool stopped = false;  // once this rank has its place
    int asked = 0;
  } store;
  tcp::Switchboard board(store, "job", 0, 8, {.secret = "s", .address = "127.0.0.1"});
  board.raise_alarm();  // tells three ranks
  EXPECT_EQ(store.asked, 1);
  for (const int rank : {1, 2, 4, 7}) {
    std::string lost;
    for (int look = 0; look < 100 && lost.empty(); ++look) {
      board.move();
      lost = board.lost(rank);
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_NE(lost.find("the store has not answered"), std::string::npos) << rank << lost;
  }
  EXPECT_EQ(store.asked, 1);
}

// Its process may live on, as here: that says nothing.
void leave_two_waiting(bool shared_memory) {
  LocalStore store;
  const auto errors = run_threads(3, [&](int p) {
    StoreOptions options = over_tcp(20);
    options.process.shared_memory = shared_memory;
    const auto c = make_store_communicator(store, "job", p, 3, options);
    if (p == 2) return;
    const auto begin = std::chrono::steady_clock::now();
    try {
      c->barrier();
      c->barrier();
    } catch (const CommError&) {
      expect(std::chrono::steady_clock::now() - begin < 10s, "long before the time-out");
      throw;
    }
  });
  EXPECT_NE(errors[0].find("it has left the group"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1], "");
}

TEST(StoreCommunicator, ARankThatLeavesIsNamed) { leave_two_waiting(false); }
TEST(StoreCommunicator, ANeighbourThatLeavesIsNamed) { leave_two_waiting(true); }

// Nothing was said between the two before.
TEST(StoreCommunicator, ANeighbourThatLeavesEndsAPatientWait) {
  LocalStore store;
  std::atomic<bool> left = false;
  const auto errors = run_threads(4, [&](int p) {
    StoreOptions options = over_tcp(5);
    options.process.shared_memory = true;
    auto c = make_store_communicator(store, "job", p, 4, options);
    std::byte word{};
    if (p == 2) {
      c.reset();
      left = true;
    } else if (p == 1) {
      const auto hear = c->plan_receive({.peer = 2, .data = {&word, 1}, .patient = true});
      hear->start();
      hear->wait_for(10);
    } else {
      while (!left) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(2s);
    }
  });
  EXPECT_NE(errors[1].find("rank 2 on"), std::string::npos) << errors[1];
}

// The same store, another prefix, one after another: nothing is left of the first.
TEST(StoreCommunicator, CommunicatorsOneAfterAnother) {
  LocalStore store;
  expect_none(run_threads(3, [&](int p) {
    for (int i = 0; i < 5; ++i) {
      const auto c = make_store_communicator(store, "job" + std::to_string(i), p, 3, over_tcp());
      check_sums(*c, 3000);
    }
  }));
}

// By whatever mistake a rank stands there already, the one that comes last hears of it, and at
// once.
TEST(StoreCommunicator, ARankStandsInAStoreOnce) {
  LocalStore store;
  expect_none(run_threads(2, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, 2, over_tcp());
    try {
      make_store_communicator(store, "job", p, 2, over_tcp());
      throw InternalError("accepted");
    } catch (const ConfigError& error) {
      expect(std::string(error.what()).find("'job' is in the store already") != std::string::npos,
             error.what());
    }
    check_sums(*c, 3000);
  }));
}

TEST(StoreCommunicator, AnotherNumberOfRanksIsSaid) {
  LocalStore store;
  const auto errors =
      run_threads(2, [&](int p) { make_store_communicator(store, "job", p, 2 + p, over_tcp(20)); });
  EXPECT_NE((errors[0] + errors[1]).find("it was started as one of "), std::string::npos)
      << errors[0] << errors[1];
}

TEST(StoreCommunicator, AnotherSecretDoesNotGetIn) {
  LocalStore store;
  const auto errors = run_threads(2, [&](int p) {
    StoreOptions options = over_tcp(2);
    if (p == 1) options.secret = "another";
    make_store_communicator(store, "job", p, 2, options);
  });
  EXPECT_NE(errors[0], "");
  EXPECT_NE(errors[1].find("nobody of this group answers"), std::string::npos) << errors[1];
}

TEST(StoreCommunicator, NoiseAtThePortHarmsNobody) {
  LocalStore store;
  std::atomic<bool> over = false;
  std::jthread noise([&] {
    const std::string noise(4096, '\x5a');
    while (!over)
      for (const char* key : {"job/rank/0", "job/rank/1"})
        if (const auto home = store.get(key, 0)) {
          const Socket socket =
              begin_connect(resolve("127.0.0.1", tcp::Home::parse(*home).port).front());
          const auto soon = std::chrono::steady_clock::now() + 100ms;
          tcp::Greeting greeting;
          receive_all(socket, std::as_writable_bytes(std::span(&greeting, 1)), soon);
          tcp::Hello hello{.from = 1, .to = 0};  // the right form, and no proof
          send_all(socket, std::as_bytes(std::span(&hello, 1)), soon);
          send_all(socket, std::as_bytes(std::span(noise)), soon);
        }
  });
  expect_none(run_threads(2, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, 2, over_tcp());
    for (int i = 0; i < 20; ++i) check_sums(*c, 5000);
    std::this_thread::sleep_for(200ms);
    c->barrier();
  }));
  over = true;
}

// One who knows the secret and then says nonsense loses its connection, and the group is told.
TEST(StoreCommunicator, NonsenseOfAMemberEndsItsConnection) {
  for (const tcp::FrameHeader nonsense :
       {tcp::FrameHeader{.kind = tcp::Kind::eager, .wire = 1, .bytes = uint64_t{1} << 62},
        tcp::FrameHeader{.kind = tcp::Kind::data, .id = 9, .bytes = uint64_t{1} << 62},
        tcp::FrameHeader{.kind = tcp::Kind{12345}}}) {
    LocalStore store;
    tcp::Switchboard board(store, "job", 0, 2, {.secret = "s", .address = "127.0.0.1"});
    const tcp::Home home = tcp::Home::parse(*store.get("job/rank/0", 0));
    const Socket socket = begin_connect(resolve("127.0.0.1", home.port).front());
    const auto until = std::chrono::steady_clock::now() + 10s;
    tcp::Greeting greeting;
    for (int i = 0; i < 100; ++i) {
      board.move();
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_TRUE(receive_all(socket, std::as_writable_bytes(std::span(&greeting, 1)), until));
    tcp::Hello hello{.from = 1, .to = 0, .nonce = fresh_nonce()};
    hello.proof =
        proof("s", "rank calls", tcp::conversation("job", home.nonce, greeting.challenge, hello));
    ASSERT_TRUE(send_all(socket, std::as_bytes(std::span(&hello, 1)), until));
    ASSERT_TRUE(send_all(socket, std::as_bytes(std::span(&nonsense, 1)), until));
    std::string lost;
    while (lost.empty() && std::chrono::steady_clock::now() < until) {
      board.move();
      lost = board.lost(1);
    }
    EXPECT_EQ(lost, "it sent what no rank sends");
  }
}

}  // namespace
}  // namespace tutti::comm
