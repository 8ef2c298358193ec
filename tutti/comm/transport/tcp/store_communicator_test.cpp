// Tests a group over TCP: control messages, messages of all sizes. Its collectives are those of
// `matrix tcp` (tests/multirank).
#include "tutti/comm/transport/tcp/store_communicator.h"

#include <chrono>

#include "tutti/base/expect_text.h"
#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/home.h"
#include "tutti/comm/transport/tcp/thread_group.h"
#include "tutti/comm/transport/tcp/wire_of_two.h"

namespace tutti::comm {
namespace {

using namespace std::chrono_literals;

TEST(StoreCommunicator, OneRank) {
  run_group(1, [](Communicator& c) {
    check_control(c);
    check_sums(c, 100);
  });
}

TEST(StoreCommunicator, ControlMessages) {
  for (const int size : {2, 3, 5})
    run_group(size, [](Communicator& c) {
      expect(c.transport() == "TCP", "transport");
      check_control(c);
    });
}

// All addresses of this host, one of which others connect to.
TEST(StoreCommunicator, WithoutAnAddressOfItsOwn) {
  StoreOptions options = over_tcp();
  options.process.address.clear();
  run_group(3, check_control, options);
}

TEST(StoreCommunicator, OverIpv6) {
  if (message_of<CommError>([] { listen_on(resolve("::1", 0).front(), 0); }) != "no error")
    GTEST_SKIP() << "this machine has no IPv6";
  StoreOptions options = over_tcp();
  options.process.address = "::1";
  run_group(3, check_control, options);
}

TEST(StoreCommunicator, SharedMemoryAmongNeighbours) {
  run_group(
      3,
      [](Communicator& c) {
        expect(c.transport() == "shared memory", "transport");
        check_control(c);
        check_sums(c, 70000);
      },
      over_shared_memory());
}

TEST(StoreCommunicator, TheSecretMayComeFromTheStore) {
  StoreOptions options = over_tcp();
  options.secret.clear();
  run_group(3, check_control, options);
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
        send->run();
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
    message->run();
    for (size_t i = 0; i < data.size(); ++i) expect(data[i] == i + 7, "content");
  });
}

// Does `work` on two ranks with a wire between them.
void run_two_wires(const std::function<void(TcpWire& wire, int rank)>& work) {
  LocalStore store;
  expect_none(run_threads(2, [&](int p) {
    TcpWire wire = wire_of_two(store, p);
    work(wire, p);
  }));
}

void wait_in_time(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 5min;
  while (!done()) {
    expect(std::chrono::steady_clock::now() < until, "in time");
    std::this_thread::yield();
  }
}

// While a long message is on its way, short ones between the same ranks pass.
TEST(StoreCommunicator, ShortMessagesPassLongOnes) {
  run_two_wires([](TcpWire& wire, int p) {
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
    wait_in_time([&] { return long_one->test() & short_one->test(); });
  });
}

// Far more than the credit, to a receiver that has posted no receive yet; then in another order.
TEST(StoreCommunicator, WhatNobodyAskedForYetIsBoundedAndComes) {
  constexpr int kMessages = 400;
  run_two_wires([](TcpWire& wire, int p) {
    std::vector<std::vector<int>> data(kMessages, std::vector<int>(2500, -1));
    const auto messages = wire.messages();
    const auto wait = [](Wire::Messages& some) { wait_in_time([&] { return some.test(); }); };
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
  });
}

// Messages that are given up at any stage do not damage those after them.
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
        message->run();
        c.barrier();
      }
  });
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

}  // namespace
}  // namespace tutti::comm
