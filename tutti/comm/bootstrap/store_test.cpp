#include "tutti/comm/bootstrap/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
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

void check_tcp_store(const char* host) {
  const TcpStoreServer server(host, 0, "secret");
  TcpStore a(host, server.port(), "secret", kHangSeconds),
      b(host, server.port(), "secret", kHangSeconds);
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

bool has_name(const char* host) {
  try {
    return !resolve(host, 0).empty();
  } catch (const CommError&) {
    return false;
  }
}

TEST(TcpStore, OfAHostByName) {
  // A newly made root has no /etc/hosts: then the name must be an error, as any unknown one.
  if (has_name("localhost"))
    check_tcp_store("localhost");
  else
    EXPECT_THROW(TcpStoreServer("localhost", 0, "secret"), CommError);
  EXPECT_THROW(TcpStoreServer("no-such-host.invalid", 0, "secret"), CommError);
}

bool has_ipv6() {
  try {
    listen_on(resolve("::1", 0).front(), 0);
    return true;
  } catch (const CommError&) {
    return false;
  }
}

TEST(TcpStore, OverIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  const TcpStoreServer server("::1", 0, "secret");
  TcpStore a("::1", server.port(), "secret", kHangSeconds),
      b("::1", server.port(), "secret", kHangSeconds);
  check_store(a, b);
}

TEST(TcpStore, ManyWaitForOneKey) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      TcpStore store("127.0.0.1", server.port(), "secret", kHangSeconds);
      if (store.get("key", kHangSeconds) == "value") ++right;
    });
  TcpStore("127.0.0.1", server.port(), "secret", kHangSeconds).set("key", "value");
  threads.clear();
  EXPECT_EQ(right, 8);
}

// A thread that waits does not keep others from setting the key it waits for.
TEST(TcpStore, ThreadsShareOne) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  TcpStore store("127.0.0.1", server.port(), "secret", kHangSeconds);
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
  TcpStore store("127.0.0.1", server->port(), "secret", kHangSeconds);
  server.reset();
  for (int again = 0; again < 3; ++again) EXPECT_THROW(store.get("key", 0), CommError);
}

TEST(TcpStore, AnotherSecretIsAClearErrorAndHarmsNobody) {
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  TcpStore store("127.0.0.1", server.port(), "secret", kHangSeconds);
  store.set("x", "one");
  EXPECT_TRUE(has_text(
      message_of<CommError>([&] { TcpStore("127.0.0.1", server.port(), "secreT", kHangSeconds); }),
      "its secret is another one than the store's"));
  EXPECT_THROW(TcpStore("127.0.0.1", server.port(), "", kHangSeconds), ConfigError);
  EXPECT_EQ(store.get("x", 0), "one");
}

TEST(TcpStore, NobodyThereIsAnErrorAfterTheTimeOut) {
  const int port = TcpStoreServer("127.0.0.1", 0, "secret").port();
  EXPECT_TRUE(has_text(message_of<CommError>([&] { TcpStore("127.0.0.1", port, "secret", 0.5); }),
                       "does not answer within 0.5 s"));
}

TEST(TcpStore, AServerThatStartsLaterIsWaitedFor) {
  const int port = TcpStoreServer("127.0.0.1", 0, "secret").port();
  std::jthread client([&] { TcpStore("127.0.0.1", port, "secret", kHangSeconds).set("x", "one"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const TcpStoreServer server("127.0.0.1", port, "secret");
  EXPECT_EQ(TcpStore("127.0.0.1", port, "secret", kHangSeconds).get("x", kHangSeconds), "one");
}

// A job that ends, and the next one at its address: an early client finds the later server.
TEST(TcpStore, AServerThatAdmitsNobodyServesThoseThatItHas) {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0, "secret");
  const int port = server->port();
  TcpStore store("127.0.0.1", port, "secret", kHangSeconds);
  store.set("x", "one");
  server->admit_nobody();
  std::string found;
  std::jthread early([&] {
    TcpStore next("127.0.0.1", port, "secret", kHangSeconds);
    found = next.get("x", kHangSeconds).value_or("nothing");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(store.get("x", 0), "one");
  store.set("x", "more");
  server.reset();
  const TcpStoreServer later("127.0.0.1", port, "secret");
  TcpStore("127.0.0.1", port, "secret", kHangSeconds).set("x", "two");
  early.join();
  EXPECT_EQ(found, "two");
}

Socket connect_to(int port) {
  Socket socket = begin_connect(resolve("127.0.0.1", port).front());
  return socket;
}

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
  EXPECT_TRUE(receive_all(socket, std::as_writable_bytes(std::span(&challenge, 1)), until));
  Introduction mine{kMagic, fresh_nonce(), {}};
  mine.proof = proof("secret", "store client", both(challenge.nonce, mine.nonce));
  EXPECT_TRUE(send_all(socket, std::as_bytes(std::span(&mine, 1)), until));
  Welcome welcome{};
  EXPECT_TRUE(receive_all(socket, std::as_writable_bytes(std::span(&welcome, 1)), until));
  EXPECT_EQ(welcome.accepted, 1u);
  return socket;
}

TEST(TcpStore, DamagedRequestsEndTheirOwnConnectionOnly) {
  using namespace store_protocol;
  const TcpStoreServer server("127.0.0.1", 0, "secret");
  TcpStore store("127.0.0.1", server.port(), "secret", kHangSeconds);
  store.set("x", "one");
  const auto soon = [] { return Clock::now() + std::chrono::minutes(5); };
  const std::string noise(5000, '\xa5');
  const Socket stranger = connect_to(server.port());
  send_all(stranger, std::as_bytes(std::span(noise)), soon());
  EXPECT_TRUE(ended(stranger));
  for (const Request request :
       {Request{kSet, UINT32_MAX, UINT32_MAX, 0, 0}, Request{kSet, 1, UINT32_MAX, 0, 0},
        Request{kGet, 0, 0, 0, 0}, Request{kGet, Store::kLongestKey + 1, 0, 0, 0},
        Request{77, 1, 1, 0, 0}}) {
    const Socket socket = proved(server.port());
    send_all(socket, std::as_bytes(std::span(&request, 1)), soon());
    send_all(socket, std::as_bytes(std::span(noise)), soon());
    EXPECT_TRUE(ended(socket)) << request.operation << " " << request.key_bytes;
  }
  {
    const Socket socket = proved(server.port());  // half a request, and gone
    send_all(socket, std::as_bytes(std::span(noise)).first(7), soon());
  }
  {
    const Socket socket = proved(server.port());  // a client that waits, and is gone
    const Request request{kGet, 1, 0, 0, 1e300};
    send_all(socket, std::as_bytes(std::span(&request, 1)), soon());
    send_all(socket, std::as_bytes(std::span(noise)).first(1), soon());
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
    TcpStore store("127.0.0.1", server.port(), "secret", kHangSeconds);
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
  std::jthread member([&] {
    found = TcpStore("127.0.0.1", port, "secret", kHangSeconds)
                .get("x", kHangSeconds)
                .value_or("nothing");
  });
  for (int ended = 0; ended < 2;) {
    SocketAddress from;
    const Socket socket = accept_on(listener, &from);
    if (!socket)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      ++ended;
  }
  listener.close();
  const TcpStoreServer server("127.0.0.1", port, "secret");
  TcpStore("127.0.0.1", port, "secret", kHangSeconds).set("x", "one");
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
