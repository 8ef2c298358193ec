#include "tutti/comm/bootstrap/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/base/refused_calls.h"
#include "tutti/comm/bootstrap/store_protocol.h"
#include "tutti/comm/bootstrap/tcp_store.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;

void check_store(Store& a, Store& b) {
  EXPECT_EQ(a.get("x", 0), std::nullopt);
  a.set("x", "one");
  EXPECT_EQ(b.get("x", 0), "one");
  b.set("x", std::string("\0two", 4));
  EXPECT_EQ(a.get("x", kHangSeconds), std::string("\0two", 4));
  a.set("empty", "");
  EXPECT_EQ(b.get("empty", 0), "");
  const auto begin = Clock::now();
  EXPECT_EQ(a.get("never", 0.3), std::nullopt);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(290));
  std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    b.set("late", "came");
  });
  EXPECT_EQ(a.get("late", kHangSeconds), "came");
}

TEST(Store, InOneProcess) {
  LocalStore store;
  check_store(store, store);
}

TcpStore client_of(int port, const char* host = "127.0.0.1") {
  return {host, port, "secret", kHangSeconds};
}

// A server with a client.
struct Served {
  TcpStoreServer server{"127.0.0.1", 0, "secret"};
  TcpStore store = client_of(server.port());
};

void check_tcp_store(const char* host) {
  const TcpStoreServer server(host, 0, "secret");
  TcpStore a = client_of(server.port(), host), b = client_of(server.port(), host);
  check_store(a, b);
  const std::string long_value(Store::kLongestValue, 'v'), long_key(Store::kLongestKey, 'k');
  a.set(long_key, long_value);
  EXPECT_EQ(b.get(long_key, 0), long_value);
  EXPECT_THROW(a.set("k", long_value + "v"), CommError);
  EXPECT_THROW(a.get(long_key + "k", 0), CommError);
  EXPECT_THROW(a.get("", 0), CommError);
  EXPECT_EQ(a.get("x", 0), std::string("\0two", 4));
}

TEST(TcpStore, SetsGetsAndWaits) { check_tcp_store("127.0.0.1"); }

// Whether `work` throws no CommError here.
template <class Work>
bool succeeds(Work work) {
  return message_of<CommError>("", work).empty();
}

TEST(TcpStore, OfAHostByName) {
  // A newly made root has no /etc/hosts: then the name must be an error, as any unknown one.
  if (succeeds([] { resolve("localhost", 0); }))
    check_tcp_store("localhost");
  else
    EXPECT_THROW(TcpStoreServer("localhost", 0, "secret"), CommError);
  EXPECT_THROW(TcpStoreServer("no-such-host.invalid", 0, "secret"), CommError);
}

TEST(TcpStore, OverIpv6) {
  if (!succeeds([] { listen_on(resolve("::1", 0).front(), 0); }))
    GTEST_SKIP() << "this machine has no IPv6";
  check_tcp_store("::1");
}

TEST(TcpStore, ManyWaitForOneKey) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      if (client_of(server.port()).get("key", kHangSeconds) == "value") ++right;
    });
  client_of(server.port()).set("key", "value");
  threads.clear();
  EXPECT_EQ(right, 8);
}

// A thread that waits does not keep others from setting the key it waits for.
TEST(TcpStore, ThreadsShareOne) {
  Served served;
  TcpStore& store = served.store;
  std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    store.set("key", "value");
  });
  EXPECT_EQ(store.get("key", kHangSeconds), "value");
}

// Callers wait for a server that may start later, but not for one that was there and is gone: they
// hold up messages meanwhile. Three waits would take longer than a test may.
TEST(TcpStore, AServerThatIsGoneIsNotWaitedFor) {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0, "secret");
  TcpStore store = client_of(server->port());
  server.reset();
  for (int again = 0; again < 3; ++again) EXPECT_THROW(store.get("key", 0), CommError);
}

TEST(TcpStore, AnotherSecretIsAClearErrorAndHarmsNobody) {
  Served served;
  const int port = served.server.port();
  served.store.set("x", "one");
  EXPECT_TRUE(throws<CommError>({"its secret is another one than the store's"},
                                [&] { TcpStore("127.0.0.1", port, "secreT", kHangSeconds); }));
  EXPECT_THROW(TcpStore("127.0.0.1", port, "", kHangSeconds), ConfigError);
  EXPECT_EQ(served.store.get("x", 0), "one");
}

TEST(TcpStore, NobodyThereIsAnErrorAfterTheTimeOut) {
  const int port = TcpStoreServer("127.0.0.1", 0, "secret").port();
  EXPECT_TRUE(throws<CommError>({"does not answer within 0.5 s"},
                                [&] { TcpStore("127.0.0.1", port, "secret", 0.5); }));
}

TEST(TcpStore, AServerThatStartsLaterIsWaitedFor) {
  const int port = TcpStoreServer("127.0.0.1", 0, "secret").port();
  std::jthread client([&] { client_of(port).set("x", "one"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const TcpStoreServer server("127.0.0.1", port, "secret");
  EXPECT_EQ(client_of(port).get("x", kHangSeconds), "one");
}

// A job that ends, and the next one at its address: an early client finds the later server.
TEST(TcpStore, AServerThatAdmitsNobodyServesThoseThatItHas) {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0, "secret");
  const int port = server->port();
  TcpStore store = client_of(port);
  store.set("x", "one");
  server->admit_nobody();
  std::string found;
  std::jthread early([&] { found = client_of(port).get("x", kHangSeconds).value_or("nothing"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(store.get("x", 0), "one");
  store.set("x", "more");
  server.reset();
  const TcpStoreServer later("127.0.0.1", port, "secret");
  client_of(port).set("x", "two");
  early.join();
  EXPECT_EQ(found, "two");
}

Socket connect_to(int port) { return begin_connect(resolve("127.0.0.1", port).front()); }

bool ended(const Socket& socket) {
  std::array<std::byte, 4096> room;
  const auto until = Clock::now() + std::chrono::minutes(5);
  while (receive_all(socket, room, until)) {}
  return errno != ETIMEDOUT;
}

// An authenticated connection, on which tests send data that a client never would.
Socket proved(int port) {
  using namespace store_protocol;
  Socket socket = connect_to(port);
  const auto until = Clock::now() + std::chrono::minutes(5);
  Challenge challenge{};
  EXPECT_TRUE(receive_all(socket, value_room(challenge), until));
  Introduction mine{kMagic, fresh_nonce(), {}};
  mine.proof = proof("secret", "store client", both(challenge.nonce, mine.nonce));
  EXPECT_TRUE(send_all(socket, value_bytes(mine), until));
  Welcome welcome{};
  EXPECT_TRUE(receive_all(socket, value_room(welcome), until));
  EXPECT_EQ(welcome.accepted, 1u);
  return socket;
}

TEST(TcpStore, DamagedRequestsEndTheirOwnConnectionOnly) {
  using namespace store_protocol;
  Served served;
  TcpStore& store = served.store;
  const int port = served.server.port();
  store.set("x", "one");
  const auto soon = [] { return Clock::now() + std::chrono::minutes(5); };
  const std::string text(5000, '\xa5');
  const auto noise = std::as_bytes(std::span(text));
  const Socket stranger = connect_to(port);
  send_all(stranger, noise, soon());
  EXPECT_TRUE(ended(stranger));
  for (const Request request :
       {Request{kSet, UINT32_MAX, UINT32_MAX, 0, 0}, Request{kSet, 1, UINT32_MAX, 0, 0},
        Request{kGet, 0, 0, 0, 0}, Request{kGet, Store::kLongestKey + 1, 0, 0, 0},
        Request{77, 1, 1, 0, 0}}) {
    const Socket socket = proved(port);
    send_all(socket, value_bytes(request), soon());
    send_all(socket, noise, soon());
    EXPECT_TRUE(ended(socket)) << request.operation << " " << request.key_bytes;
  }
  send_all(proved(port), noise.first(7), soon());  // half a request, and gone
  {
    const Socket socket = proved(port);  // a client that waits, and is gone
    send_all(socket, value_bytes(Request{kGet, 1, 0, 0, 1e300}), soon());
    send_all(socket, noise.first(1), soon());
  }
  EXPECT_EQ(store.get("x", 0), "one");
  store.set("\xa5", "two");
  EXPECT_EQ(store.get("\xa5", 0), "two");
}

// Its thread gets no random numbers, so no stranger gets a challenge.
TEST(TcpStore, AStrangerWhoCannotBeServedDoesNotEndTheProcess) {
  std::optional<TcpStoreServer> server;
  bool filtered = false;
  std::thread([&] {
    filtered = refuse_calls({SYS_getrandom}, EPERM);
    server.emplace("127.0.0.1", 0, "secret");  // its thread inherits the filter
  }).join();
  ASSERT_TRUE(filtered);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ended(connect_to(server->port())));
}

// More strangers than the budget, and others that come and go all the time.
TEST(TcpStore, StrangersDoNotKeepMembersOut) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  std::vector<Socket> strangers;
  for (size_t i = 0; i < 300; ++i) strangers.push_back(connect_to(server.port()));
  std::atomic<bool> over = false;
  std::jthread flood([&] {
    for (int i = 0; i < 1000 && !over; ++i) connect_to(server.port());
  });
  for (int member = 0; member < 5; ++member) {
    TcpStore store = client_of(server.port());
    store.set("x", "one");
    EXPECT_EQ(store.get("x", 0), "one");
  }
  over = true;
}

// A server with many strangers ends connections of some members, too.
TEST(TcpStore, AConnectionThatEndsBeforeItIsAnsweredIsMadeAgain) {
  Socket listener = listen_on(resolve("127.0.0.1", 0).front(), 0);
  const int port = port_of(listener);
  std::string found;
  std::jthread member([&] { found = client_of(port).get("x", kHangSeconds).value_or("nothing"); });
  for (int ended = 0; ended < 2;) {
    SocketAddress from;
    if (accept_on(listener, &from))
      ++ended;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  listener.close();
  const TcpStoreServer server("127.0.0.1", port, "secret");
  client_of(port).set("x", "one");
  member.join();
  EXPECT_EQ(found, "one");
}

TEST(SocketAddress, IsReadFromText) {
  EXPECT_EQ(parse_address("node7:29500").host, "node7");
  EXPECT_EQ(parse_address("node7:29500").port, 29500);
  EXPECT_EQ(parse_address("[::1]:80").host, "::1");
  for (const char* wrong :
       {"", "node7", "node7:", ":80", "node7:x", "node7:99999", "::1:80", "a:1x"})
    EXPECT_THROW(parse_address(wrong), ConfigError) << wrong;
}

}  // namespace
}  // namespace tutti::comm
