#include "tutti/data/transform/field_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/made_set.h"
#include "tutti/data/transform/sample_writer.h"

namespace tutti::data {
namespace {

// Not square, so that swapping height and width is noticed.
const Shape kImage{3, 8, 6};
constexpr int64_t kImagePixels = 3 * 8 * 6;
const FieldStatistics kStatistics{.mean = {0.4914f, 0.4822f, 0.4465f},
                                  .deviation = {0.2470f, 0.2435f, 0.2616f}};
const Field kField{.name = "image", .shape = kImage, .statistics = kStatistics};

FieldSteps steps_of(int pad, bool flip) {
  return parse_steps(
      fmt::format("image: crop pad {}{}, divide 255, normalise", pad, flip ? ", flip x" : ""));
}

struct Crop {
  int64_t top, left;
  bool mirror;
  bool operator==(const Crop&) const = default;
};
Crop crop_of(const Chance& chance, int pad, bool flip) {
  return {chance.crop(1, 2 * pad + 1), chance.crop(0, 2 * pad + 1), flip && chance.flip(0)};
}

std::vector<uint8_t> noise_image(uint64_t seed) {
  Rng rng(seed, Purpose::test, 0);
  std::vector<uint8_t> pixels(static_cast<size_t>(kImagePixels));
  for (uint8_t& x : pixels)
    x = static_cast<uint8_t>(rng.below(255) + 1);  // never 0, to distinguish padding from pixels
  return pixels;
}

// The definition, step by step: pad with zero bytes, crop, mirror, scale to [0, 1], normalise.
float expected_at(const std::vector<uint8_t>& pixels, int pad, const Crop& crop,
                  const int64_t (&at)[3]) {
  const auto [c, y, x] = at;
  const int64_t padded_y = y + crop.top, padded_x = (crop.mirror ? 5 - x : x) + crop.left;
  const int64_t from_y = padded_y - pad, from_x = padded_x - pad;
  const bool inside = from_y >= 0 && from_y < 8 && from_x >= 0 && from_x < 6;
  const uint8_t byte = inside ? pixels[static_cast<size_t>((c * 8 + from_y) * 6 + from_x)] : 0;
  const auto channel = static_cast<size_t>(c);
  return (static_cast<float>(byte) / 255.0f - kStatistics.mean[channel]) /
         kStatistics.deviation[channel];
}

template <class T>
void expect_batch(const TensorDesc& desc) {
  const FieldWriter writer(kField, steps_of(2, true), desc);
  std::vector<T> batch(static_cast<size_t>(desc.layout.storage_elements(desc.shape)), T(99.0f));
  std::set<bool> mirrors;
  for (int64_t n = 0; n < desc.shape[0]; ++n) {
    const auto pixels = noise_image(static_cast<uint64_t>(n));
    const Chance chance(5, 3, n);
    const Crop crop = crop_of(chance, 2, true);
    mirrors.insert(crop.mirror);
    writer.write(pixels.data(), &chance, n, batch.data());
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < 8; ++y)
        for (int64_t x = 0; x < 6; ++x) {
          const int64_t index[] = {n, c, y, x};
          const T found = batch[static_cast<size_t>(desc.layout.offset(desc.shape, index))];
          ASSERT_EQ(static_cast<float>(found),
                    static_cast<float>(T(expected_at(pixels, 2, crop, {c, y, x}))))
              << desc.to_string() << " at " << n << ' ' << c << ' ' << y << ' ' << x;
        }
  }
  EXPECT_EQ(mirrors.size(), 2u) << "the samples chosen must show both";
}

TEST(FieldWriter, EveryLayoutAndTypeEqualsTheDefinition) {
  const Shape shape{9, 3, 8, 6};
  Layout channels_columns_rows;  // no fast path handles this layout: width before height, width in
                                 // blocks of 4
  channels_columns_rows.order = {1, 0, 3, 2, 4, 5};
  channels_columns_rows.blocks[0] = {3, 4};
  channels_columns_rows.num_blocks = 1;
  for (const Layout& layout : {Layout::plain(), Layout::channels_last(4),
                               Layout::blocked_channels(16), channels_columns_rows}) {
    expect_batch<float>({DType::f32, shape, layout});
    expect_batch<bf16>({DType::bf16, shape, layout});
  }
}

TEST(FieldWriter, ACropWiderThanTheImageIsPadding) {
  const FieldWriter writer(kField, steps_of(9, true), {DType::f32, {1, 3, 8, 6}, {}});
  const auto pixels = noise_image(1);
  std::vector<float> batch(static_cast<size_t>(kImagePixels));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t i = 0; i < 3000; ++i) {
    const Chance chance(1, 0, i);
    const Crop crop = crop_of(chance, 9, true);
    seen.insert({crop.top, crop.left});
    writer.write(pixels.data(), &chance, 0, batch.data());
    for (int64_t e = 0; e < kImagePixels; ++e)
      ASSERT_EQ(batch[static_cast<size_t>(e)],
                expected_at(pixels, 9, crop, {e / 48, e / 6 % 8, e % 6}));
  }
  EXPECT_EQ(seen.size(), 361u) << "every window was tried";
}

TEST(FieldWriter, WithoutChanceTheImageIsWhole) {
  const FieldWriter writer(kField, steps_of(4, true), {DType::f32, {1, 3, 8, 6}, {}});
  const auto pixels = noise_image(1);
  std::vector<float> batch(static_cast<size_t>(kImagePixels));
  writer.write(pixels.data(), nullptr, 0, batch.data());
  for (size_t i = 0; i < batch.size(); ++i)
    EXPECT_EQ(batch[i], (static_cast<float>(pixels[i]) / 255.0f - kStatistics.mean[i / 48]) /
                            kStatistics.deviation[i / 48]);
}

// A volume as CosmoFlow stores it: channels last, numbers of two bytes.
TEST(FieldWriter, PermutesAndTakesLogarithms) {
  const Field field{.name = "x", .element = ElementType::i16, .shape = {4, 3, 2, 5}};
  std::vector<int16_t> stored(120);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<int16_t>(i * 17 % 97);
  const FieldWriter writer(field, parse_steps("x: permute 3 0 1 2, log1p"),
                           {DType::f32, {2, 5, 4, 3, 2}, Layout::channels_last(5)});
  std::vector<float> batch(240);
  writer.write(stored.data(), nullptr, 1, batch.data());
  // The result is channels last again: the same order, after position 0.
  for (size_t i = 0; i < stored.size(); ++i)
    ASSERT_EQ(batch[120 + i], std::log1p(static_cast<float>(stored[i]))) << i;
}

/// Results are the same with a look-up and with a computation.
TEST(FieldWriter, LogarithmsAreTheLibrarysOfAnyNumber) {
  const std::vector<float> stored{0,       -0.f,  1,      4094,    4095,     4096, 30000, 0.5f,
                                  4095.5f, -0.5f, 1e-30f, 3.4e38f, INFINITY, NAN,  -2};
  const auto size = static_cast<int64_t>(stored.size());
  const Field field{.name = "x", .element = ElementType::f32, .shape = {size}};
  const FieldWriter writer(field, parse_steps("x: log1p"), {DType::f32, {1, size}, {}});
  std::vector<float> batch(stored.size());
  writer.write(stored.data(), nullptr, 0, batch.data());
  for (size_t i = 0; i < stored.size(); ++i) {
    const float expected = std::log1p(stored[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(batch[i])) << stored[i];
    else
      EXPECT_EQ(std::signbit(batch[i]) == std::signbit(expected) && batch[i] == expected, true)
          << stored[i];
  }
}

TEST(FieldWriter, EveryElementTypeIsReadAsItsNumber) {
  const auto expect = [](auto first, ElementType element) {
    using T = decltype(first);
    const Field field{.name = "y", .element = element, .shape = {3}};
    const std::array<T, 3> stored = {T(7), T(0), static_cast<T>(std::is_signed_v<T> ? -3 : 3)};
    std::array<float, 3> batch{};
    FieldWriter(field, parse_steps("y: add 0.5, clip -2 6"), {DType::f32, {1, 3}, {}})
        .write(stored.data(), nullptr, 0, batch.data());
    EXPECT_EQ(batch, (std::array<float, 3>{6, 0.5f, std::is_signed_v<T> ? -2.0f : 3.5f}))
        << name_of(element);
  };
  expect(uint8_t{}, ElementType::u8);
  expect(int8_t{}, ElementType::i8);
  expect(uint16_t{}, ElementType::u16);
  expect(int16_t{}, ElementType::i16);
  expect(uint32_t{}, ElementType::u32);
  expect(int32_t{}, ElementType::i32);
  expect(int64_t{}, ElementType::i64);
  expect(float{}, ElementType::f32);
  expect(double{}, ElementType::f64);
}

TEST(FieldWriter, StepsComeBeforeDigitsAreLost) {
  const Field field{.name = "y", .element = ElementType::f64, .shape = {2}};
  const std::array<double, 2> stored = {1e9 + 0.25, 1e9 - 0.5};
  std::array<float, 2> batch{};
  FieldWriter(field, parse_steps("y: add -1000000000"), {DType::f32, {1, 2}, {}})
      .write(stored.data(), nullptr, 0, batch.data());
  EXPECT_EQ(batch, (std::array<float, 2>{0.25f, -0.5f}));
}

// Channels differ, and are adjacent in the file or not, for numbers with and without tables.
TEST(FieldWriter, NormalisesEachChannelWhereverItLies) {
  for (const ElementType element : {ElementType::u8, ElementType::f32})
    for (const bool last : {false, true}) {
      const Field field{
          .name = "x", .element = element, .shape = last ? Shape{2, 4, 3} : Shape{3, 2, 4}};
      const FieldWriter writer(field,
                               parse_steps(fmt::format("x: {}min-max min 0 10 20 max 1 12 24",
                                                       last ? "permute 2 0 1, " : "")),
                               {DType::f32, {1, 3, 2, 4}, {}});
      std::vector<uint8_t> bytes;
      std::vector<float> floats;
      for (int i = 0; i < 24; ++i) {
        bytes.push_back(static_cast<uint8_t>(i * 3));
        floats.push_back(static_cast<float>(i * 3));
      }
      std::vector<float> batch(24);
      writer.write(
          element == ElementType::u8 ? static_cast<const void*>(bytes.data()) : floats.data(),
          nullptr, 0, batch.data());
      for (int c = 0; c < 3; ++c)
        for (int p = 0; p < 8; ++p) {
          const int at = last ? p * 3 + c : c * 8 + p;
          const float low = static_cast<float>(10 * c), high[] = {1, 12, 24};
          ASSERT_EQ(batch[static_cast<size_t>(c * 8 + p)],
                    (static_cast<float>(at * 3) - low) / (high[c] - low));
        }
    }
}

TEST(FieldWriter, SymmetriesOfTheCubeAreAllFortyEightOnceEach) {
  const Field field{.name = "x", .element = ElementType::u8, .shape = {1, 3, 3, 3}};
  const FieldWriter writer(field, parse_steps("x: symmetries x y z"),
                           {DType::f32, {1, 1, 3, 3, 3}, {}});
  std::vector<uint8_t> stored(27);
  for (size_t i = 0; i < 27; ++i) stored[i] = static_cast<uint8_t>(i);
  std::set<std::vector<float>> seen;
  for (int64_t i = 0; i < 2000; ++i) {
    std::vector<float> batch(27);
    const Chance chance(1, 0, i);
    writer.write(stored.data(), &chance, 0, batch.data());
    // A symmetry keeps distances, so the middle cell stays and opposite cells remain opposite.
    for (size_t e = 0; e < 27; ++e) ASSERT_EQ(batch[e] + batch[26 - e], 26);
    seen.insert(batch);
  }
  EXPECT_EQ(seen.size(), 48u);
}

TEST(SampleWriter, AnImageAndItsMaskMeetTheSameChance) {
  const MadeSet set(50,
                    {{.name = "image", .element = ElementType::f32, .shape = {1, 9, 9}},
                     {.name = "mask", .element = ElementType::i64, .shape = {9, 9}}},
                    [](int64_t index, Sample& sample) {
                      auto* image = static_cast<float*>(sample.own(0));
                      auto* mask = static_cast<int64_t*>(sample.own(1));
                      for (int64_t i = 0; i < 81; ++i)
                        image[i] = static_cast<float>(mask[i] = i * index % 83 + 1);
                    });
  const std::vector<BatchField> fields = {{"image", {DType::f32, {1, 1, 7, 8}, {}}},
                                          {"mask", {DType::i32, {1, 7, 8}, {}}}};
  const auto steps = [](const std::string& field) {
    return parse_steps(field + ": crop 7 8 pad 2, flip y x");
  };
  const SampleWriter writer(set, fields, std::vector{steps("image"), steps("mask")}, 3);
  Sample sample(set.fields());
  std::vector<float> image(56);
  std::vector<int32_t> mask(56);
  const std::vector<void*> batch = {image.data(), mask.data()};
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, sample);
    writer.write(sample, 4, i, 0, batch);
    for (size_t e = 0; e < 56; ++e) ASSERT_EQ(image[e], static_cast<float>(mask[e]));
  }
  EXPECT_THROW(SampleWriter(set, fields, std::vector{steps("image"), steps("image")}, 3),
               ConfigError);
  EXPECT_THROW(SampleWriter(set, fields, std::vector{parse_steps("label: add 1")}, 3), ConfigError);
}

TEST(Chance, IsPureUniformAndIndependentOfTheOtherSwitches) {
  const auto at = [](int64_t epoch, int64_t index) {
    return crop_of(Chance(5, epoch, index), 4, true);
  };
  EXPECT_EQ(at(2, 17), at(2, 17));
  std::vector<int> tops(9), lefts(9);
  int mirrored = 0, moved = 0;
  for (int64_t i = 0; i < 9000; ++i) {
    const Crop crop = at(0, i);
    ++tops.at(static_cast<size_t>(crop.top));
    ++lefts.at(static_cast<size_t>(crop.left));
    mirrored += crop.mirror;
    moved += !(crop == at(1, i));
  }
  for (const int count : tops) EXPECT_NEAR(count, 1000, 130);
  for (const int count : lefts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_NEAR(mirrored, 4500, 200);
  EXPECT_GT(moved, 8800);  // 1/162 of the crops repeat by chance
}

TEST(FieldWriter, RefusesWhatDoesNotFit) {
  const TensorDesc desc{DType::f32, {1, 3, 8, 6}, {}};
  const auto refused = [&](const std::string& steps, const Field& field, const TensorDesc& batch,
                           const std::string& why) {
    EXPECT_TRUE(throws<ConfigError>({why}, [&] { FieldWriter(field, parse_steps(steps), batch); }))
        << steps;
  };
  refused("image: normalise mean 1 2 std 1 2", kField, desc, "numbers for 2 channels");
  refused("image: normalise", kField, desc, "divide 255");
  refused("image: divide 255, normalise", {.name = "image", .shape = kImage}, desc,
          "does not say its own");
  refused("image: crop 9 6", kField, desc, "crop asks for 9");
  refused("image: permute 1 0", kField, desc, "permute names 2");
  refused("image: crop 4 4", kField, desc, "leaves its transforms as 3x4x4");
  refused("image: symmetries x y", kField, desc, "equal sides");
  refused("label: add 1", {.name = "label"}, {DType::i32, {4}, {}}, "whole numbers");
}

TEST(FieldWriter, RowsAloneNeedNoOtherStoredRows) {
  // Rows 2 to 5 of y, in the batch and at any place in the stored field.
  const std::vector<std::pair<std::string, Shape>> cases = {
      {"x: divide 2", {3, 8, 8}},
      {"x: permute 2 0 1, flip x y, add 1", {8, 8, 3}},
      {"x: permute 1 2 0, crop 6 6 pad 2, divide 2", {8, 3, 8}},
      {"x: symmetries x y", {3, 8, 8}}};
  for (const auto& [text, shape] : cases)
    for (const ElementType element : {ElementType::u8, ElementType::f32}) {
      const Field field{.name = "x", .element = element, .shape = shape};
      const FieldSteps steps = parse_steps(text);
      const Shape placed = placed_shape(field, steps.placement);
      const Shape batch{1, placed[0], placed[1], placed[2]};
      const TensorDesc desc{DType::f32, batch, {}};
      const FieldWriter all(field, steps, desc), some(field, steps, desc, BatchRows{2, 2, 5});
      for (int64_t n = 0; n < 20; ++n) {
        const Chance chance(7, 1, n);
        const FieldRows rows = some.stored_rows(&chance);
        ASSERT_GE(rows.axis, 0);
        std::vector<uint8_t> stored(field.bytes()), parts(field.bytes());
        const int64_t inner = shape.elements_from(rows.axis + 1);
        for (int64_t i = 0; i < field.elements(); ++i) {
          const bool wanted = i / inner % shape[rows.axis] >= rows.first &&
                              i / inner % shape[rows.axis] < rows.last;
          const auto value = static_cast<float>(i % 200);
          const auto at = static_cast<size_t>(i);
          if (element == ElementType::u8) {
            stored[at] = static_cast<uint8_t>(i % 200);
            if (wanted) parts[at] = stored[at];
          } else {
            std::memcpy(&stored[4 * at], &value, 4);
            if (wanted) std::memcpy(&parts[4 * at], &value, 4);
          }
        }
        std::vector<float> whole(static_cast<size_t>(batch.elements())), part(whole.size(), -1);
        all.write(stored.data(), &chance, 0, whole.data());
        some.write(parts.data(), &chance, 0, part.data());
        for (int64_t c = 0; c < placed[0]; ++c)
          for (int64_t i = 2 * placed[2]; i < 5 * placed[2]; ++i) {
            const auto at = static_cast<size_t>(c * placed[1] * placed[2] + i);
            ASSERT_EQ(part[at], whole[at]) << text << " " << n << " at " << at;
          }
      }
    }
}

}  // namespace
}  // namespace tutti::data
