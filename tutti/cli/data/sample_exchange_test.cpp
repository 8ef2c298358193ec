#include "tutti/cli/data/sample_exchange.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::cli {
namespace {

// A server that cannot be woken would never end.
TEST(SampleExchange, AServerWithoutDescriptorsIsRefused) {
  EXPECT_EQ(with_refused({SYS_eventfd2}, EMFILE,
                         [] {
                           try {
                             const SampleServer server("secret", "127.0.0.1");
                           } catch (const CommError& error) {
                             return std::string(error.what()).find("ulimit -n") !=
                                    std::string::npos;
                           }
                           return false;
                         }),
            0);
}

/// Runs in the server's thread alone: no client can get a challenge.
TEST(SampleExchange, AStrangerWhoCannotBeServedDoesNotEndTheProcess) {
  std::unique_ptr<SampleServer> server;
  bool filtered = false;
  std::thread([&] {
    filtered = refuse_calls({SYS_getrandom}, EPERM);
    server = std::make_unique<SampleServer>("secret", "127.0.0.1");
  }).join();
  ASSERT_TRUE(filtered);
  const comm::Socket socket =
      comm::begin_connect(comm::resolve("127.0.0.1", server->port()).front());
  std::byte room{};
  EXPECT_FALSE(comm::receive_all(socket, {&room, 1},
                                 std::chrono::steady_clock::now() + std::chrono::minutes(5)));
  EXPECT_NE(errno, ETIMEDOUT);
}

// A firewall, or a restart of the peer, has ended the connection.
TEST(SampleExchange, AnIdleConnectionThatHasEndedIsNoLostNode) {
  const auto communicator = comm::make_single_communicator();
  auto server = std::make_unique<SampleServer>("secret", "127.0.0.1");
  const int port = server->port();
  SampleClients clients(*communicator, "secret", *server, std::chrono::hours(1));
  std::vector<std::byte> packed;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(clients.get(0, packed)) << "it has no samples yet";
  server.reset();
  server = std::make_unique<SampleServer>("secret", "127.0.0.1", port);
  EXPECT_FALSE(clients.get(0, packed));
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(has_text(message, "does not answer"));
}

}  // namespace
}  // namespace tutti::cli
