#include "tutti/backend/cpu/reorder.h"

#include <gtest/gtest.h>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/tiled_run.h"
#include "tutti/ops/reorder.h"

namespace tutti {
namespace {

using testing::Values;

std::vector<Layout> layouts() {
  Layout nested;  // OIhw8i16o2i
  nested.blocks = {Layout::Block{1, 8}, Layout::Block{0, 16}, Layout::Block{1, 2}};
  nested.num_blocks = 3;
  Layout pair;  // OIhw16i16o
  pair.blocks = {Layout::Block{1, 16}, Layout::Block{0, 16}};
  pair.num_blocks = 2;
  Layout swapped;  // OIhw16o16i
  swapped.blocks = {Layout::Block{0, 16}, Layout::Block{1, 16}};
  swapped.num_blocks = 2;
  return {Layout::plain(), Layout::channels_last(4), Layout::blocked_channels(16), nested, pair,
          swapped};
}

TEST(CpuReorder, AnyLayoutToAnyOtherInParts) {
  for (const Shape& shape : {Shape{20, 17, 3, 2}, Shape{1, 32, 1, 1}})
    for (const Layout& from : layouts())
      for (const Layout& to : layouts())
        for (const DType type : {DType::f32, DType::bf16}) {
          const TensorDesc x{DType::f32, shape, from}, y{type, shape, to};
          const Reorder op(type);
          const auto found = CpuBackend().candidates({&op, {x}, {y}, {false}, {false}});
          const bool transposes =
              type == DType::f32 && from.num_blocks == 2 && to.num_blocks == 2 && from != to;
          ASSERT_EQ(found.at(0).name, transposes ? "cpu:transpose_blocks" : "cpu:reorder");
          const auto kernel = found[0].make();
          const Values values = testing::random_values(shape.elements(), 1);
          Buffer source = testing::pack(x, values);
          Buffer target(y.bytes());
          std::fill_n(target.as<uint8_t>().data(), target.bytes(), uint8_t{0xFF});
          void *in = source.data(), *out = target.data();
          for (int part = 2; part >= 0; --part) {
            KernelArgs args;
            args.in = &in;
            args.out = &out;
            args.part = part;
            args.parts = 3;
            kernel->run(args);
          }
          const Buffer want = testing::pack(y, values);  // padding is zero there
          ASSERT_EQ(0, std::memcmp(want.data(), target.data(), y.bytes()))
              << x.to_string() << " to " << y.to_string();
        }
}

TEST(CpuReorder, BytesBecomeFloatsAndBackWithSaturation) {
  const Shape shape{2, 3, 1, 1};
  const TensorDesc bytes{DType::u8, shape, {}}, floats{DType::f32, shape, Layout::channels_last(4)};
  const auto run = [](const TensorDesc& from, const TensorDesc& to, Values v) {
    const Reorder op(to.dtype);
    std::vector<Values> in{std::move(v)};
    return testing::run_tiled(CpuBackend().candidates({&op, {from}, {to}, {false}, {false}}).at(0),
                              in, {{2}, {true}, {true}})[0];
  };
  const Values v{0, 1, 2, 127, 128, 255, 3, 4, 5, 6, 7, 254};
  EXPECT_EQ(run(bytes, floats, v), v);
  EXPECT_EQ(run(floats, bytes, {-3, 0.4f, 0.6f, 254.7f, 255.4f, 1000, 1, 1, 1, 1, 1, 1}),
            (Values{0, 0, 1, 255, 255, 255, 1, 1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace tutti
