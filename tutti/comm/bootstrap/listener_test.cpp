#include "tutti/comm/bootstrap/listener.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"

namespace tutti::comm {
namespace {

using namespace std::chrono_literals;

/// A deadline that only a hang reaches.
auto hang_limit() {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(kHangSeconds));
}

std::string hail(const Nonce& nonce) { return "hail" + std::string(text_of(nonce)); }

Listener make_listener() { return {listen_on(resolve("127.0.0.1", 0).front(), 0), {8, hail}}; }

Socket call(int port) {
  Socket socket = begin_connect(resolve("127.0.0.1", port).front());
  EXPECT_TRUE(finish_connect(socket, hang_limit()));
  return socket;
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// Waits until so many connections have answered.
std::vector<Stranger> wait_for(Listener& listener, size_t count) {
  std::vector<Stranger> all;
  const auto until = hang_limit();
  while (all.size() < count && std::chrono::steady_clock::now() < until) {
    for (Stranger& one : listener.look()) all.push_back(std::move(one));
    std::this_thread::sleep_for(1ms);
  }
  return all;
}

bool say_eight_bytes(const Socket& socket) {
  return send_all(socket, std::as_bytes(std::span("8 bytes.", 8)), hang_limit());
}

TEST(Listener, AStrangerIsHeardWhenItHasSaidAll) {
  Listener listener = make_listener();
  const Socket socket = call(listener.port());
  EXPECT_TRUE(listener.look().empty());
  EXPECT_TRUE(listener.pending());
  Nonce nonce{};
  std::array<char, 4> hailed{};
  const auto soon = hang_limit();
  ASSERT_TRUE(receive_all(socket, value_room(hailed), soon));
  ASSERT_TRUE(receive_all(socket, value_room(nonce), soon));
  const std::string words = "halfwhole and more";
  const auto bytes = std::as_bytes(std::span(words));
  ASSERT_TRUE(send_all(socket, bytes.first(4), soon));
  for (int look = 0; look < 5; ++look) EXPECT_TRUE(listener.look().empty());
  ASSERT_TRUE(send_all(socket, bytes.subspan(4), soon));
  const auto answered = wait_for(listener, 1);
  ASSERT_EQ(answered.size(), 1u);
  EXPECT_EQ(answered[0].answer, "halfwhol");
  EXPECT_EQ(answered[0].challenge, nonce);
  std::array<char, 10> rest{};
  EXPECT_TRUE(receive_all(answered[0].socket, value_room(rest), soon));
  EXPECT_EQ(std::string(rest.data(), rest.size()), "e and more");
  EXPECT_FALSE(listener.pending());
}

// Hundreds of callers hold connections to one listener. They cost few descriptors, and keep out no
// other caller, neither of another listener of this process nor of this one.
TEST(Listener, StrangersOfAProcessShareABudget) {
  Listener besieged = make_listener(), other = make_listener();
  const Socket quiet = call(other.port());
  EXPECT_TRUE(other.look().empty());
  std::vector<Socket> held;
  const std::ptrdiff_t before = open_files();
  for (int i = 0; i < 300; ++i) {
    held.push_back(call(besieged.port()));
    EXPECT_TRUE(besieged.look().empty());
  }
  for (int look = 0; look < 50; ++look) EXPECT_TRUE(besieged.look().empty());
  EXPECT_LE(open_files() - before - std::ssize(held), std::ptrdiff_t{Listener::kMost});
  ASSERT_TRUE(say_eight_bytes(quiet));
  EXPECT_EQ(wait_for(other, 1).size(), 1u);
  const Socket newcomer = call(besieged.port());
  besieged.look();
  ASSERT_TRUE(say_eight_bytes(newcomer));
  EXPECT_EQ(wait_for(besieged, 1).size(), 1u);
}

// Connects from any address of the loopback.
Socket call_from(const std::string& host, int port) {
  const SocketAddress from = resolve(host, 0).front(), to = resolve("127.0.0.1", port).front();
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto bare = [](const SocketAddress& address) {
    return reinterpret_cast<const sockaddr*>(&address.storage);
  };
  EXPECT_EQ(::bind(socket.descriptor(), bare(from), from.length), 0);
  EXPECT_EQ(::connect(socket.descriptor(), bare(to), to.length), 0);
  return socket;
}

// The host with most strangers has none at the listener with most strangers.
TEST(Listener, TheLotFallsAmongHostsOfTheBusiestListener) {
  Listener besieged = make_listener(), other = make_listener();
  std::vector<Socket> held, of_one_host;
  for (size_t i = 0; i < 40; ++i) {
    held.push_back(call_from(fmt::format("127.0.1.{}", i + 1), besieged.port()));
    EXPECT_TRUE(besieged.look().empty());
  }
  for (size_t i = held.size(); i < Listener::kMost + 3; ++i) {
    of_one_host.push_back(call(other.port()));
    EXPECT_TRUE(other.look().empty());
  }
  for (const Socket& one : of_one_host) ASSERT_TRUE(say_eight_bytes(one));
  EXPECT_EQ(wait_for(other, of_one_host.size()).size(), of_one_host.size());
}

// With a low limit of files, strangers take an eighth of it.
TEST(Listener, ALowLimitOfFilesMakesTheBudgetSmaller) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  Listener listener = make_listener();
  std::vector<Socket> held;
  for (int i = 0; i < 60; ++i) held.push_back(call(listener.port()));
  const std::ptrdiff_t files = open_files();
  rlimit low = before;
  low.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int look = 0; look < 20; ++look) EXPECT_TRUE(listener.look().empty());
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(open_files() - files, 16);
}

// A listener that cannot accept stays ready: a thread that polls it would not sleep.
TEST(Listener, WithoutDescriptorsItRests) {
  Listener listener = make_listener();
  const Socket waits = call(listener.port());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(dup(0));  // the lowest that is free
  close(static_cast<int>(none.rlim_cur));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(listener.look().empty());
  pollfd entry{listener.ready().descriptor(), POLLIN, 0};
  const int ready = poll(&entry, 1, 0);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ready, 0);
  EXPECT_TRUE(listener.pending());
  ASSERT_TRUE(say_eight_bytes(waits));
  EXPECT_EQ(wait_for(listener, 1).size(), 1u);
}

}  // namespace
}  // namespace tutti::comm
