#include "tutti/cli/bench/comm_flags.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::cli {
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
  EXPECT_EQ(sizes_in({"8", "128", 4}), (std::vector<size_t>{8, 32, 128}));
  EXPECT_EQ(sizes_in({"8", "127", 4}), (std::vector<size_t>{8, 32}));
  EXPECT_EQ(sizes_in({"1M", "1M", 2}), (std::vector<size_t>{1 << 20}));
  EXPECT_EQ(sizes_in({"1", "3", 1.3}), (std::vector<size_t>{1, 2, 3})) << "each once";
  EXPECT_EQ(sizes_in({"1K", "3K", 1, "1K"}), (std::vector<size_t>{1024, 2048, 3072}))
      << "-f 1 adds -i, as in nccl-tests";
  EXPECT_THROW(sizes_in({"8", "128", 0.5}), ConfigError);
  EXPECT_THROW(sizes_in({"8", "4", 2}), ConfigError);
}

TEST(CommFlags, ElementsByBothNames) {
  EXPECT_EQ(element_of_flag("float"), comm::Element::f32);
  EXPECT_EQ(element_of_flag("f32"), comm::Element::f32);
  EXPECT_EQ(element_of_flag("bfloat16"), comm::Element::bf16);
  EXPECT_EQ(element_of_flag("half"), comm::Element::f16);
  EXPECT_EQ(element_of_flag("int64"), comm::Element::i64);
  EXPECT_EQ(element_of_flag("uint8"), comm::Element::u8);
  EXPECT_THROW(element_of_flag("quad"), ConfigError);
}

TEST(CommFlags, Collectives) {
  EXPECT_EQ(collectives_named("all").size(), static_cast<size_t>(comm::kCollectives));
  EXPECT_EQ(collectives_named("allgather,broadcast"),
            (std::vector{comm::Collective::allgather, comm::Collective::broadcast}));
  EXPECT_THROW(collectives_named(""), ConfigError);
  EXPECT_TRUE(throws<ConfigError>({"'allgathre', did you mean 'allgather'?"},
                                  [&] { collectives_named("allreduce,allgathre"); }));
}

}  // namespace
}  // namespace tutti::cli
