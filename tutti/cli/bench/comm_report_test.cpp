#include "tutti/cli/bench/comm_report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"

namespace tutti::cli {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

CommBenchRow row() {
  CommBenchRow r;
  r.count = 1000, r.bytes = 4000, r.algorithm = "ring";
  r.seconds = 2e-6, r.average = 3e-6, r.least = 1e-6, r.most = 5e-6;
  return r;
}

TEST(CommReport, ColumnsOfNccl) {
  const OpenPeer one{"memcpy", nullptr}, two{"Gloo", nullptr};
  CommBenchOptions options;
  options.peers = {&one, &two};
  CommBenchRow r = row();
  r.peer_seconds = {1.5e-6, std::nullopt};
  EXPECT_EQ(words(comm_line(CommColumns::nccl, options, r, 4)),
            (std::vector<std::string>{"4000", "1000", "f32", "sum", "ring", "2.00", "2.000",
                                      "3.000", "N/A", "1.50", "N/A"}));
  r.wrong = 7;
  EXPECT_EQ(words(comm_line(CommColumns::nccl, options, r, 4))[8], "7");
  options.overlap = true;
  r.hidden = 0.254;
  EXPECT_EQ(words(comm_line(CommColumns::nccl, options, r, 4)).back(), "25%");
  EXPECT_EQ(comm_line(CommColumns::nccl, options, r, 4).size(),
            comm_header(CommColumns::nccl, options)
                .substr(comm_header(CommColumns::nccl, options).rfind('\n') + 1)
                .size());
}

TEST(CommReport, UnitsAndAverageBusBandwidth) {
  CommBenchOptions options;
  options.checks = 1;
  EXPECT_TRUE(has_text(comm_header(CommColumns::nccl, options), "(GB/s)"));
  EXPECT_NEAR(bus_bandwidth(comm::Collective::allreduce, row(), 4), 3e9, 1);
  const std::string footer = comm_footer(options, 0, {1e9, 3e9});
  EXPECT_TRUE(has_text(footer, "Average bus bandwidth  : 2.000 GB/s"));
  EXPECT_TRUE(has_text(footer, "0 OK"));
  EXPECT_TRUE(has_text(comm_footer(options, 3, {}), "3 FAILED"));
  options.checks = 0;
  EXPECT_TRUE(has_text(comm_footer(options, 0, {}), "not checked"));
}

TEST(CommReport, ColumnsOfOsu) {
  const CommBenchOptions options;
  EXPECT_EQ(words(comm_line(CommColumns::osu, options, row(), 4)),
            (std::vector<std::string>{"4000", "3.00", "1.00", "5.00", "20"}));
  EXPECT_TRUE(has_text(comm_header(CommColumns::osu, options), "Avg Latency(us)"));
}

TEST(CommReport, Json) {
  const OpenPeer one{"memcpy", nullptr}, two{"oneCCL", nullptr};
  CommBenchOptions options;
  options.peers = {&one, &two};
  CommBenchRow r = row();
  r.peer_seconds = {std::nullopt, 4e-6};
  const Json json = comm_json(options, r, 2);
  EXPECT_DOUBLE_EQ(json["oneccl_us"], 4);
  EXPECT_FALSE(json.contains("memcpy_us"));
  EXPECT_FALSE(json.contains("wrong"));
  EXPECT_DOUBLE_EQ(json["time_us"], 2);
}

}  // namespace
}  // namespace tutti::cli
