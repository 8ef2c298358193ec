#include "tutti/comm/bootstrap/socket.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::comm {
namespace {

SocketAddress literal(const char* host) { return resolve(host, 0).front(); }

TEST(OwnAddress, IsNamedInSeveralWays) {
  EXPECT_FALSE(own_address(""));
  EXPECT_EQ(own_address("127.0.0.1")->host(), "127.0.0.1");
  const std::vector<SocketAddress> all = own_addresses();
  ASSERT_FALSE(all.empty());
  for (const SocketAddress& one : all) {
    const std::string host = one.host();
    EXPECT_EQ(own_address(host)->host(), host);
    EXPECT_EQ(own_address(host + (host.find(':') == std::string::npos ? "/32" : "/128"))->host(),
              host);
  }
  EXPECT_EQ(own_address("0.0.0.0/0")->storage.ss_family, AF_INET);
  for (const char* wrong :
       {"240.0.0.1", "240.0.0.0/8", "no-such-host.invalid", "10.0.0.0/33", "10/8", "::/200"})
    EXPECT_TRUE(throws<ConfigError>({all.front().host()}, [&] { own_address(wrong); })) << wrong;
}

TEST(OwnAddress, OfANameIsOneThatOthersCanReach) {
  const SocketAddress of_debian = literal("127.0.1.1"), first = own_addresses().front();
  EXPECT_EQ(own_among({of_debian, literal("240.0.0.1"), first})->host(),
            first.is_loopback() ? of_debian.host() : first.host());
  EXPECT_EQ(own_among({of_debian})->host(), of_debian.host());
  EXPECT_FALSE(own_among({literal("240.0.0.1")}));
}

// Debian's /etc/hosts maps the host's own name to this address.
TEST(ThisHostAlone, IsNotWhatAHostsNameMeansThoughItStandsForTheLoopback) {
  EXPECT_TRUE(means_this_host_alone("localhost", literal("127.0.0.1")));
  EXPECT_TRUE(means_this_host_alone("127.0.1.1", literal("127.0.1.1")));
  EXPECT_TRUE(means_this_host_alone("::1", literal("::1")));
  EXPECT_FALSE(means_this_host_alone("node0", literal("127.0.1.1")));
  EXPECT_FALSE(means_this_host_alone("node0", literal("127.0.0.1")));
  EXPECT_FALSE(means_this_host_alone("10.0.0.3", literal("10.0.0.3")));
}

TEST(HostsToReach, AreFewAndNeverNone) {
  EXPECT_EQ(hosts_to_reach(literal("127.0.0.1"), 4), std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(hosts_to_reach({}, 1), std::vector<std::string>{own_addresses().front().host()});
}

}  // namespace
}  // namespace tutti::comm
