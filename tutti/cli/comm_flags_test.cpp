#include "tutti/cli/comm_flags.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(CommFlags, Bytes) {
  EXPECT_EQ(parse_bytes("8", "-b"), 8u);
  EXPECT_EQ(parse_bytes("2640000", "-b"), 2640000u);
  EXPECT_EQ(parse_bytes("64K", "-b"), 65536u);
  EXPECT_EQ(parse_bytes("1.5M", "-b"), 1572864u);
  EXPECT_EQ(parse_bytes("2GiB", "-b"), size_t{2} << 30);
  for (const char* wrong : {"", "K", "1T", "-1", "0", "0.5", "1 K", "nan", "1e30"})
    EXPECT_THROW(parse_bytes(wrong, "-b"), ConfigError) << wrong;
}

TEST(CommFlags, Sizes) {
  EXPECT_EQ(sizes_between("8", "128", 4), (std::vector<size_t>{8, 32, 128}));
  EXPECT_EQ(sizes_between("8", "127", 4), (std::vector<size_t>{8, 32}));
  EXPECT_EQ(sizes_between("1M", "1M", 2), (std::vector<size_t>{1 << 20}));
  EXPECT_EQ(sizes_between("1", "3", 1.3), (std::vector<size_t>{1, 2, 3})) << "each once";
  EXPECT_THROW(sizes_between("8", "128", 1), ConfigError);
  EXPECT_THROW(sizes_between("8", "4", 2), ConfigError);
}

TEST(CommFlags, Checks) {
  EXPECT_EQ(parse_checks(""), 1);
  EXPECT_EQ(parse_checks("0"), 0);
  EXPECT_EQ(parse_checks("3"), 3);
  for (const char* wrong : {"-1", "1.5", "yes", "3x"})
    EXPECT_THROW(parse_checks(wrong), ConfigError) << wrong;
}

TEST(CommFlags, Collectives) {
  EXPECT_EQ(collectives_named("all").size(), static_cast<size_t>(comm::kCollectives));
  EXPECT_EQ(collectives_named("allgather,broadcast"),
            (std::vector{comm::Collective::allgather, comm::Collective::broadcast}));
  EXPECT_THROW(collectives_named(""), ConfigError);
  try {
    collectives_named("allreduce,allgathre");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'allgathre', did you mean 'allgather'?"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tutti
