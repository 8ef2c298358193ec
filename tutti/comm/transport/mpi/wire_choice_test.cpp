#include "tutti/comm/transport/mpi/wire_choice.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

// The variables that Open MPI 4.1 keeps after MPI_Init, shortened.
const std::vector<std::string> kOverTcp{
    "pml",           "pml_base_verbose",     "pml_ob1_eager_limit",
    "btl",           "btl_base_verbose",     "btl_self_latency",
    "btl_tcp_links", "btl_vader_eager_limit"};

std::vector<std::string> over_tcp_and(const std::string& more) {
  std::vector<std::string> all = kOverTcp;
  all.push_back(more);
  return all;
}

TEST(WireChoice, TcpWhereMpiHasNothingElseBetweenHosts) { EXPECT_TRUE(sends_over_tcp(kOverTcp)); }

TEST(WireChoice, MpiWhereItHasAnotherNetwork) {
  for (const char* other : {"btl_openib_flags", "btl_uct_memory_domains", "btl_ofi_mode",
                            "btl_usnic_stats", "btl_ugni_latency", "btl_new_one"})
    EXPECT_FALSE(sends_over_tcp(over_tcp_and(other))) << other;
  for (const char* other : {"pml_ucx_priority", "pml_cm_priority", "pml_monitoring_output"})
    EXPECT_FALSE(sends_over_tcp(over_tcp_and(other))) << other;
}

TEST(WireChoice, MpiWhereNobodyCanTell) {
  EXPECT_FALSE(sends_over_tcp({}));
  EXPECT_FALSE(sends_over_tcp({"pml", "pml_base_verbose", "btl", "btl_tcp_links"}));
  EXPECT_FALSE(sends_over_tcp({"pml_ob1_eager_limit", "btl_vader_eager_limit"}));
}

TEST(WireChoice, Names) {
  EXPECT_EQ(wire_named("auto"), WireKind::automatic);
  EXPECT_EQ(wire_named("tcp"), WireKind::tcp);
  EXPECT_THROW(wire_named("udp"), ConfigError);
}

}  // namespace
}  // namespace tutti::comm
