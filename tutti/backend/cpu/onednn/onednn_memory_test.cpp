#include <gtest/gtest.h>

#include <array>

#include "tutti/backend/cpu/onednn/onednn.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

TEST(OnednnMemory, LayoutsSurviveTheRoundTrip) {
  Layout bf16_weights;
  bf16_weights.blocks = {Layout::Block{1, 8}, Layout::Block{0, 16}, Layout::Block{1, 2}};
  bf16_weights.num_blocks = 3;
  Layout stem;  // Acdb16a
  stem.order = {0, 2, 3, 1, 4, 5};
  stem.blocks[0] = {0, 16};
  stem.num_blocks = 1;
  for (const Layout& layout :
       {Layout::plain(), Layout::channels_last(4), Layout::blocked_channels(16),
        Layout::blocked_channels(8), bf16_weights, stem})
    for (const Shape& shape : {Shape{32, 48, 3, 5}, Shape{10, 3, 1, 7}, Shape{16, 1, 7, 7}}) {
      const TensorDesc desc{DType::bf16, shape, layout};
      const auto md = onednn::MemoryDesc::of(desc);
      EXPECT_EQ(md.bytes(), desc.bytes()) << desc.to_string();
      ASSERT_TRUE(md.layout().has_value()) << desc.to_string();
      const Layout back = *md.layout();
      EXPECT_NO_THROW(onednn::MemoryDesc::of({desc.dtype, shape, back}))
          << desc.to_string() << " came back as " << back.to_string(4);
      for (int64_t i = 0; i < shape.elements();
           ++i) {  // extents of 1 leave the order open: only the offsets must be equal
        const std::array<int64_t, 4> at{i / (shape[1] * shape[2] * shape[3]),
                                        i / (shape[2] * shape[3]) % shape[1],
                                        i / shape[3] % shape[2], i % shape[3]};
        ASSERT_EQ(back.offset(shape, at.data()), layout.offset(shape, at.data()))
            << desc.to_string();
      }
    }
  EXPECT_TRUE(onednn::MemoryDesc::of({DType::f32, {16, 32, 1, 1}, {}}).layout()->is_plain());
}

TEST(OnednnMemory, NamesAnUnknownLayout) {
  Layout odd;
  odd.blocks[0] = {1, 7};
  odd.num_blocks = 1;
  EXPECT_THROW(onednn::MemoryDesc::of({DType::f32, {2, 14, 3, 3}, odd}), DeviceError);
}

}  // namespace
}  // namespace tutti::backend
