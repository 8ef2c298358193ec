#include "tutti/tensor/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tutti/base/error.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti {
namespace {

int64_t at(const Layout& layout, const Shape& shape, std::initializer_list<int64_t> index) {
  return layout.offset(shape, index.begin());
}

TEST(Layout, OffsetsOfTheUsualForms) {
  const Shape shape{2, 32, 4, 5};
  EXPECT_EQ(at(Layout::plain(), shape, {1, 2, 3, 4}), ((1 * 32 + 2) * 4 + 3) * 5 + 4);
  EXPECT_EQ(at(Layout::channels_last(4), shape, {1, 2, 3, 4}), ((1 * 4 + 3) * 5 + 4) * 32 + 2);
  EXPECT_EQ(at(Layout::blocked_channels(16), shape, {1, 18, 3, 4}),
            (((1 * 2 + 1) * 4 + 3) * 5 + 4) * 16 + 2);
}

TEST(Layout, AnOffsetIsASumOfTermsByDimension) {
  const Shape shape{2, 32, 4, 5};
  for (const Layout& layout :
       {Layout::plain(), Layout::channels_last(4), Layout::blocked_channels(16)}) {
    int64_t sum = 0;
    for (int d = 0; d < 4; ++d) sum += layout.terms(shape, d).at(static_cast<size_t>(shape[d] - 1));
    EXPECT_EQ(sum, at(layout, shape, {1, 31, 3, 4})) << layout.to_string(4);
  }
}

TEST(Layout,
     NestedBlocksCoverStorageOnce) {  // OIhw8i16o2i, the bf16 weight layout, on a padded shape
  Layout layout;
  layout.blocks = {Layout::Block{1, 8}, Layout::Block{0, 16}, Layout::Block{1, 2}};
  layout.num_blocks = 3;
  const Shape shape{20, 17, 3, 3};
  EXPECT_EQ(layout.storage_elements(shape), 32 * 32 * 9);
  std::set<int64_t> seen;
  for (int64_t o = 0; o < 20; ++o)
    for (int64_t i = 0; i < 17; ++i)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t w = 0; w < 3; ++w) seen.insert(at(layout, shape, {o, i, h, w}));
  EXPECT_EQ(seen.size(), 20u * 17 * 9);
  EXPECT_LT(*seen.rbegin(), layout.storage_elements(shape));
}

TEST(Layout, AMirroredWindowCountsFromItsEnd) {
  Layout layout;
  layout.blocks = {Layout::Block{1, 8}, Layout::Block{0, 16}};
  layout.num_blocks = 2;
  Layout mirrored = layout;
  mirrored.mirrored = true;
  const Shape shape{20, 17, 2, 3};
  EXPECT_EQ(at(mirrored, shape, {19, 16, 0, 1}), at(layout, shape, {19, 16, 1, 1}));
  EXPECT_EQ(at(mirrored, shape, {19, 16, 1, 0}), at(layout, shape, {19, 16, 0, 2}));
  int64_t sum = 0;
  const std::array<size_t, 4> index{19, 16, 0, 1};
  for (int d = 0; d < 4; ++d) sum += mirrored.terms(shape, d).at(index[static_cast<size_t>(d)]);
  EXPECT_EQ(sum, at(mirrored, shape, {19, 16, 0, 1}));
  EXPECT_NE(mirrored.to_string(4), layout.to_string(4));  // it affects the plan's hash
}

TEST(Layout, TermsReachIntoThePaddingIfAsked) {
  const Layout layout = Layout::blocked_channels(16);
  const Shape shape{2, 20, 3};
  EXPECT_EQ(layout.terms(shape, 1).size(), 20u);
  EXPECT_EQ(layout.terms(shape, 1, true).size(), 32u);
}

TEST(Layout, SwappedInputsAndOutputsLieInTheSamePlaces) {
  Layout layout;
  layout.order = {1, 0, 2, 3, 4, 5};
  layout.blocks = {Layout::Block{1, 8}, Layout::Block{0, 16}, Layout::Block{1, 2}};
  layout.num_blocks = 3;
  const Layout swapped = layout.with_first_two_swapped();
  EXPECT_EQ(at(layout, {32, 48, 3, 3}, {17, 35, 1, 2}),
            at(swapped, {48, 32, 3, 3}, {35, 17, 1, 2}));
  EXPECT_EQ(swapped.with_first_two_swapped(), layout);
}

TEST(Layout, RefusesMoreElementsThanFit) {
  constexpr int64_t kMost = int64_t{1} << 48;
  EXPECT_EQ(Layout::plain().storage_elements({3, 0, 5}), 0);
  EXPECT_EQ(Layout::plain().storage_elements({kMost}), kMost);
  for (const Shape& shape : {Shape{kMost, 2}, Shape{int64_t{1} << 62, 84},
                             Shape{int64_t{1} << 32, int64_t{1} << 32}, Shape{INT64_MAX}})
    EXPECT_THROW((void)(TensorDesc{DType::f32, shape, {}}.bytes()), ConfigError)
        << shape.to_string();
}

TEST(Layout, ChannelBlock) {
  const Shape shape{2, 32, 4, 5};
  EXPECT_EQ(Layout::plain().channel_block(shape), 1);
  EXPECT_EQ(Layout::channels_last(4).channel_block(shape), 32);
  EXPECT_EQ(Layout::blocked_channels(16).channel_block(shape), 16);
  EXPECT_EQ(Layout::blocked_channels(16).channel_block({2, 3, 4, 5}), 0);
  EXPECT_EQ(Layout::plain().channel_block({2, 32}), 1);
}

TEST(TensorDesc, BytesIncludePadding) {
  EXPECT_EQ((TensorDesc{DType::bf16, {1, 3, 2, 2}, Layout::blocked_channels(16)}).bytes(),
            16u * 4 * 2);
  EXPECT_EQ((TensorDesc{DType::f32, {}, {}}).bytes(), 4u);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(bf16(1.0f).bits, 0x3F80);
  EXPECT_EQ(bf16(std::bit_cast<float>(0x3F808000u)).bits, 0x3F80);  // tie to even
  EXPECT_EQ(bf16(std::bit_cast<float>(0x3F818000u)).bits, 0x3F82);
  EXPECT_TRUE(static_cast<float>(bf16(NAN)) != static_cast<float>(bf16(NAN)));
}

}  // namespace
}  // namespace tutti
