// A group over TCP whose members, store or neighbours fail or misbehave.
#include <atomic>
#include <chrono>

#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/home.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"
#include "tutti/comm/transport/tcp/thread_group.h"

namespace tutti::comm {
namespace {

using namespace std::chrono_literals;

TEST(StoreCommunicator, OtherSizesAreNamed) {
  LocalStore store;
  const auto errors = run_threads(2, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, 2, over_tcp());
    std::vector<std::byte> data(p == 0 ? 40000 : 20000);
    const auto message = p == 0 ? c->plan_send({.peer = 1, .data = data})
                                : c->plan_receive({.peer = 0, .data = data});
    message->run();
  });
  EXPECT_TRUE(has_text(errors[1], "sent 40000 bytes where 20000 were expected"));
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
    if (p < 2) make_store_communicator(store, "job", p, 3, over_tcp(patience(1)));
  });
  EXPECT_TRUE(has_text(errors[0], "not arrived: rank 2"));
  EXPECT_NE(errors[1], "");
}

// Acts as a store whose server is stopped: a question takes its time-out, and all messages wait.
TEST(StoreCommunicator, AStoreThatHasFailedIsNotAskedAgain) {
  class Silent final : public Store {
   public:
    void set(const std::string&, const std::string&) override { stopped = true; }
    std::optional<std::string> get(const std::string&, double) override {
      if (!stopped) return std::nullopt;  // no process has been this rank before
      ++asked;
      throw CommError("the store has not answered");
    }
    bool stopped = false;  // once this rank has its place
    int asked = 0;
  } store;
  tcp::Switchboard board(store, "job", 0, 8, {.secret = "s", .address = "127.0.0.1"});
  board.raise_alarm();  // sends it to three ranks
  EXPECT_EQ(store.asked, 1);
  for (const int rank : {1, 2, 4, 7}) {
    std::string lost;
    while (lost.empty()) {
      board.move();
      lost = board.lost(rank);
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(has_text(lost, "the store has not answered")) << rank;
  }
  EXPECT_EQ(store.asked, 1);
}

// The process of the rank that leaves may live on, as here: that proves nothing.
void leave_two_waiting(bool shared_memory) {
  LocalStore store;
  const auto errors = run_threads(3, [&](int p) {
    const auto c =
        make_store_communicator(store, "job", p, 3, over_tcp(kHangSeconds, shared_memory));
    if (p == 2) return;
    c->barrier();
    c->barrier();
  });
  EXPECT_TRUE(has_text(errors[0], "it has left the group"));
  EXPECT_NE(errors[1], "");
}

TEST(StoreCommunicator, ARankThatLeavesIsNamed) { leave_two_waiting(false); }
TEST(StoreCommunicator, ANeighbourThatLeavesIsNamed) { leave_two_waiting(true); }

// The two have exchanged nothing before.
TEST(StoreCommunicator, ANeighbourThatLeavesEndsAPatientWait) {
  LocalStore store;
  std::atomic<bool> left = false;
  const auto errors = run_threads(4, [&](int p) {
    auto c = make_store_communicator(store, "job", p, 4, over_shared_memory());
    std::byte word{};
    if (p == 2) {
      c.reset();
      left = true;
    } else if (p == 1) {
      const auto hear = c->plan_receive({.peer = 2, .data = {&word, 1}, .patient = true});
      hear->start();
      hear->wait_for(kHangSeconds);
    } else {
      while (!left) std::this_thread::sleep_for(1ms);
      sleep_patiently(2);
    }
  });
  EXPECT_TRUE(has_text(errors[1], "rank 2 on"));
}

// If a rank stands in the store already, by whatever mistake, the last one gets an error at once.
TEST(StoreCommunicator, ARankStandsInAStoreOnce) {
  LocalStore store;
  expect_none(run_threads(2, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, 2, over_tcp());
    EXPECT_TRUE(throws<ConfigError>({"'job' is in the store already"}, [&] {
      make_store_communicator(store, "job", p, 2, over_tcp());
    }));
    check_sums(*c, 3000);
  }));
}

TEST(StoreCommunicator, AnotherNumberOfRanksIsSaid) {
  LocalStore store;
  const auto errors =
      run_threads(2, [&](int p) { make_store_communicator(store, "job", p, 2 + p, over_tcp()); });
  EXPECT_TRUE(has_text((errors[0] + errors[1]), "it was started as one of "))
      << errors[0] << errors[1];
}

TEST(StoreCommunicator, AnotherSecretDoesNotGetIn) {
  LocalStore store;
  const auto errors = run_threads(2, [&](int p) {
    StoreOptions options = over_tcp(patience(2));
    if (p == 1) options.secret = "another";
    make_store_communicator(store, "job", p, 2, options);
  });
  EXPECT_NE(errors[0], "");
  EXPECT_TRUE(has_text(errors[1], "nobody of this group answers"));
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
          receive_all(socket, value_room(greeting), soon);
          tcp::Hello hello{.from = 1, .to = 0};  // the right form, and no proof
          send_all(socket, value_bytes(hello), soon);
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

// A rank under many unauthenticated connections ends some before it has answered: it is not lost.
TEST(StoreCommunicator, ConnectionsThatEndUnansweredAreMadeAgain) {
  LocalStore store;
  const Socket listener = listen_on(resolve("127.0.0.1", 0).front(), 0);
  store.set(
      "job/rank/1",
      tcp::Home{
          .nonce = fresh_nonce(), .port = port_of(listener), .ranks = 2, .hosts = {"127.0.0.1"}}
          .text());
  tcp::Switchboard board(store, "job", 0, 2, {.secret = "s", .address = "127.0.0.1"});
  EXPECT_EQ(board.lost(1), "");  // connects
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(static_cast<int>(kHangSeconds));
  for (int ended = 0; ended < 5 && std::chrono::steady_clock::now() < until;) {
    board.move();
    EXPECT_EQ(board.lost(1), "");
    SocketAddress from;
    const Socket socket = accept_on(listener, &from);
    if (!socket) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    const tcp::Greeting greeting{.challenge = fresh_nonce()};
    if (ended++ % 2 == 0) send_all(socket, value_bytes(greeting), until);
  }
  EXPECT_LT(std::chrono::steady_clock::now(), until) << "it has not tried again";
}

// A member that sends invalid frames after its proof loses its connection; the group gets an error.
TEST(StoreCommunicator, NonsenseOfAMemberEndsItsConnection) {
  for (const tcp::FrameHeader nonsense :
       {tcp::FrameHeader{.kind = tcp::Kind::eager, .wire = 1, .bytes = uint64_t{1} << 62},
        tcp::FrameHeader{.kind = tcp::Kind::data, .id = 9, .bytes = uint64_t{1} << 62},
        tcp::FrameHeader{.kind = tcp::Kind{12345}}}) {
    LocalStore store;
    tcp::Switchboard board(store, "job", 0, 2, {.secret = "s", .address = "127.0.0.1"});
    const tcp::Home home = tcp::Home::parse(*store.get("job/rank/0", 0));
    const Socket socket = begin_connect(resolve("127.0.0.1", home.port).front());
    const auto until = std::chrono::steady_clock::now() + 5min;
    tcp::Greeting greeting;
    for (int i = 0; i < 100; ++i) {
      board.move();
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_TRUE(receive_all(socket, value_room(greeting), until));
    tcp::Hello hello{.from = 1, .to = 0, .nonce = fresh_nonce()};
    hello.proof =
        proof("s", "rank calls", tcp::conversation("job", home.nonce, greeting.challenge, hello));
    ASSERT_TRUE(send_all(socket, value_bytes(hello), until));
    ASSERT_TRUE(send_all(socket, value_bytes(nonsense), until));
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
