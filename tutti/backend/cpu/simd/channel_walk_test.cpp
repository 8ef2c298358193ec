#include "tutti/backend/cpu/simd/channel_walk.h"

#include <gtest/gtest.h>

namespace tutti::backend {
namespace {

TEST(ChannelView, HasTheBlockOfALayout) {
  const Shape shape{2, 32, 6, 6};
  EXPECT_EQ(channel_view({DType::f32, shape, Layout::plain()}).block, 1);
  EXPECT_EQ(channel_view({DType::f32, shape, Layout::channels_last(4)}).block, 32);
  EXPECT_EQ(channel_view({DType::f32, shape, Layout::blocked_channels(16)}).block, 16);
}

TEST(ChannelView, RefusesPaddedChannelsWhichHaveNone) {
  EXPECT_THROW(channel_view({DType::f32, Shape{2, 17, 6, 6}, Layout::blocked_channels(16)}), Error);
}

}  // namespace
}  // namespace tutti::backend
