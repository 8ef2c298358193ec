#include "tutti/mlsl/layout/comm_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace tutti::mlsl::layout {
namespace {

// 2 samples of 3 maps of 2 elements: "Aa Bb Cc", "Dd Ee Ff".
const std::string kActivation = "AaBbCcDdEeFf";

template <class F>
std::string moved(F move, const std::vector<CommBlock>& blocks, size_t element_bytes,
                  const std::string& from, std::string to) {
  move(blocks, element_bytes, std::as_bytes(std::span(from)).data(),
       std::as_writable_bytes(std::span(to)).data());
  return to;
}

TEST(CommBlock, PacksSampleByMapByElement) {
  const std::vector<CommBlock> blocks{{{0, 2}, {1, 2}, 2, 6, 1}, {{1, 1}, {0, 1}, 2, 6, 10}};
  EXPECT_EQ(blocks[0].elements(), 8u);
  const std::string buffer = moved(pack, blocks, 1, kActivation, "............");
  EXPECT_EQ(buffer, ".BbCcEeFf.Dd");
  EXPECT_EQ(moved(unpack, blocks, 1, buffer, "------------"), "--BbCcDdEeFf")
      << "only what the blocks hold";
}

TEST(CommBlock, CountsInElements) {
  // The same text as 6 elements of 2 bytes: maps of one element.
  const std::vector<CommBlock> blocks{{{0, 2}, {1, 1}, 1, 3, 1}};
  const std::string buffer = moved(pack, blocks, 2, kActivation, "........");
  EXPECT_EQ(buffer, "..BbEe..");
  EXPECT_EQ(moved(unpack, blocks, 2, buffer, "------------"), "--Bb----Ee--");
}

}  // namespace
}  // namespace tutti::mlsl::layout
