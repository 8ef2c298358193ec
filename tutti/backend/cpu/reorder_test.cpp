#include "tutti/ops/reorder.h"

#include <gtest/gtest.h>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/kernel/tiled_run.h"

namespace tutti::backend {
namespace {

using testing::Values;

Layout blocked(std::initializer_list<Layout::Block> blocks) {
  Layout layout;
  for (const Layout::Block& block : blocks)
    layout.blocks[static_cast<size_t>(layout.num_blocks++)] = block;
  return layout;
}

const Layout kNested = blocked({{1, 8}, {0, 16}, {1, 2}});  // OIhw8i16o2i
const Layout kBackward = blocked({{0, 8}, {1, 16}, {0, 2}});
const Layout kPair = blocked({{1, 16}, {0, 16}});     // OIhw16i16o
const Layout kSwapped = blocked({{0, 16}, {1, 16}});  // OIhw16o16i

/// Returns Ohwi with blocks.
Layout inputs_last(std::initializer_list<Layout::Block> blocks) {
  Layout layout = blocked(blocks);
  layout.order = {0, 2, 3, 1, 4, 5};
  return layout;
}
const Layout kPanels = inputs_last({{0, 16}});
const Layout kWide = inputs_last({{0, 32}, {1, 2}});

std::vector<Layout> layouts() {
  return {Layout::plain(),
          Layout::channels_last(4),
          Layout::blocked_channels(16),
          kNested,
          kBackward,
          kPair,
          kSwapped,
          kPanels,
          kWide};
}

TEST(CpuReorder, AnyLayoutToAnyOtherInParts) {
  for (const Shape& shape : {Shape{20, 17, 3, 2}, Shape{1, 32, 1, 1}, Shape{32, 48, 3, 1},
                             Shape{24, 40, 1, 2}, Shape{2, 21, 5, 7}})
    for (const Layout& from : layouts())
      for (const Layout& to : layouts())
        for (const DType type : {DType::f32, DType::bf16}) {
          const TensorDesc x{DType::f32, shape, from}, y{type, shape, to};
          const ops::Reorder op(type);
          const auto found = CpuBackend().candidates({&op, {x}, {y}, {false}, {false}});
          const auto kernel = found.at(0).make();
          const Values values = testing::random_values(shape.elements(), 1);
          device::Buffer source = testing::pack(x, values);
          device::Buffer target(y.bytes());
          std::fill_n(target.as<uint8_t>().data(), target.bytes(), uint8_t{0xFF});
          void *in = source.data(), *out = target.data();
          for (int part = 2; part >= 0; --part) {
            kernel->run({.in = &in, .out = &out, .thread = part, .threads = 3});
          }
          const device::Buffer want = testing::pack(y, values);  // padding is zero there
          ASSERT_EQ(0, std::memcmp(want.data(), target.data(), y.bytes()))
              << x.to_string() << " to " << y.to_string();
        }
}

TEST(CpuReorder, WeightsGoThroughBlocks) {
  const auto name = [](const Shape& shape, const Layout& from, DType type, const Layout& to) {
    const ops::Reorder op(type);
    return CpuBackend()
        .candidates({&op, {{DType::f32, shape, from}}, {{type, shape, to}}, {false}, {false}})
        .at(0)
        .name;
  };
  const Shape shape{32, 48, 3, 3};
  for (const Layout& from : {kPair, kSwapped, kPanels}) {
    for (const Layout& to : {kNested, kBackward, kWide})
      EXPECT_EQ(name(shape, from, DType::bf16, to), "cpu:reorder_blocks");
    for (const Layout& to : {kPair, kSwapped, kPanels})
      EXPECT_EQ(name(shape, from, DType::f32, to),
                from == to ? "cpu:reorder" : "cpu:reorder_blocks");
  }
  EXPECT_EQ(name({32, 3, 7, 7}, Layout::plain(), DType::bf16, kNested), "cpu:reorder");
}

TEST(CpuReorder, ActivationsAreTransposed) {
  const Layout plain = Layout::plain(), last = Layout::channels_last(4);
  const auto name = [](const Shape& shape, const Layout& from, const Layout& to) {
    const ops::Reorder op(DType::f32);
    const TensorDesc x{DType::f32, shape, from}, y{DType::f32, shape, to};
    return CpuBackend().candidates({&op, {x}, {y}, {false}, {false}}).at(0).name;
  };
  EXPECT_EQ(name({2, 21, 5, 7}, plain, last), "cpu:reorder_turned");
  EXPECT_EQ(name({2, 21, 5, 7}, last, plain), "cpu:reorder_turned");
  EXPECT_EQ(name({2, 3, 5, 7}, plain, last), "cpu:reorder");
}

TEST(CpuReorder, BytesBecomeFloatsAndBackWithSaturation) {
  const Shape shape{2, 3, 1, 1};
  const TensorDesc bytes{DType::u8, shape, {}}, floats{DType::f32, shape, Layout::channels_last(4)};
  const auto run = [](const TensorDesc& from, const TensorDesc& to, Values v) {
    const ops::Reorder op(to.dtype);
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
}  // namespace tutti::backend
