#include "tutti/data/augment.h"

#include <gtest/gtest.h>

#include <set>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti::data {
namespace {

constexpr ImageShape kImage{3, 8, 6};  // not square, so that an exchange of height and width shows

AugmentSpec spec_of(int pad, bool flip) {
  return {.seed = 5,
          .pad = pad,
          .flip = flip,
          .normalization = {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}}};
}

std::vector<uint8_t> noise_image(uint64_t seed) {
  Rng rng(seed, Purpose::test, 0);
  std::vector<uint8_t> pixels(static_cast<size_t>(kImage.pixels()));
  for (uint8_t& x : pixels)
    x = static_cast<uint8_t>(rng.below(255) + 1);  // never 0: padding is told from pixels
  return pixels;
}

// The definition, step by step: pad with zero bytes, crop, mirror, scale to [0, 1], normalise.
float expected_at(const std::vector<uint8_t>& pixels, const AugmentSpec& spec, const Crop& crop,
                  const int (&at)[3]) {
  const auto [c, y, x] = at;
  const int padded_y = y + crop.top,
            padded_x = (crop.mirror ? kImage.width - 1 - x : x) + crop.left;
  const int from_y = padded_y - spec.pad, from_x = padded_x - spec.pad;
  const bool inside = from_y >= 0 && from_y < kImage.height && from_x >= 0 && from_x < kImage.width;
  const uint8_t byte =
      inside ? pixels[static_cast<size_t>((c * kImage.height + from_y) * kImage.width + from_x)]
             : 0;
  const auto channel = static_cast<size_t>(c);
  return (static_cast<float>(byte) / 255.0f - spec.normalization.mean[channel]) /
         spec.normalization.deviation[channel];
}

template <class T>
void expect_batch(const TensorDesc& desc) {
  const AugmentSpec spec = spec_of(2, true);
  const Augment augment(spec, kImage, desc);
  std::vector<T> batch(static_cast<size_t>(desc.layout.storage_elements(desc.shape)), T(99.0f));
  std::set<bool> mirrors;
  for (int n = 0; n < desc.shape[0]; ++n) {
    const auto pixels = noise_image(static_cast<uint64_t>(n));
    const Crop crop = random_crop(spec, 3, n);
    mirrors.insert(crop.mirror);
    augment.write_random(pixels.data(), 3, n, n, batch.data());
    for (int c = 0; c < kImage.channels; ++c)
      for (int y = 0; y < kImage.height; ++y)
        for (int x = 0; x < kImage.width; ++x) {
          const int64_t index[] = {n, c, y, x};
          const T found = batch[static_cast<size_t>(desc.layout.offset(desc.shape, index))];
          ASSERT_EQ(static_cast<float>(found),
                    static_cast<float>(T(expected_at(pixels, spec, crop, {c, y, x}))))
              << desc.to_string() << " at " << n << ' ' << c << ' ' << y << ' ' << x;
        }
  }
  EXPECT_EQ(mirrors.size(), 2u) << "the samples chosen must show both";
}

TEST(Augment, EveryLayoutAndTypeEqualsTheDefinition) {
  const Shape shape{9, 3, 8, 6};
  Layout channels_columns_rows;  // a form that no fast path knows: width before height, width in
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

TEST(Augment, EveryCropOfAWindowIsRight) {
  const AugmentSpec spec = spec_of(9, true);  // wider than the image: some crops see padding alone
  const Augment augment(spec, kImage, {DType::f32, {1, 3, 8, 6}, {}});
  const auto pixels = noise_image(1);
  std::vector<float> batch(static_cast<size_t>(kImage.pixels()));
  for (int top = 0; top <= 18; ++top)
    for (int left = 0; left <= 18; ++left)
      for (const bool mirror : {false, true}) {
        augment.write(pixels.data(), {top, left, mirror}, 0, batch.data());
        for (int i = 0; i < kImage.pixels(); ++i)
          ASSERT_EQ(batch[static_cast<size_t>(i)],
                    expected_at(pixels, spec, {top, left, mirror}, {i / 48, i / 6 % 8, i % 6}));
      }
}

TEST(Augment, WholeImageIsTheImageNormalised) {
  const AugmentSpec spec = spec_of(4, true);
  const Augment augment(spec, kImage, {DType::f32, {1, 3, 8, 6}, {}});
  const auto pixels = noise_image(1);
  std::vector<float> batch(static_cast<size_t>(kImage.pixels()));
  augment.write_whole(pixels.data(), 0, batch.data());
  for (size_t i = 0; i < batch.size(); ++i)
    EXPECT_EQ(batch[i], (static_cast<float>(pixels[i]) / 255.0f - spec.normalization.mean[i / 48]) /
                            spec.normalization.deviation[i / 48]);
}

TEST(RandomCrop, IsPureUniformAndIndependentOfTheOtherSwitches) {
  const AugmentSpec spec = spec_of(4, true);
  EXPECT_EQ(random_crop(spec, 2, 17), random_crop(spec, 2, 17));
  std::vector<int> tops(9), lefts(9);
  int mirrored = 0, moved = 0;
  for (int64_t i = 0; i < 9000; ++i) {
    const Crop crop = random_crop(spec, 0, i);
    ++tops.at(static_cast<size_t>(crop.top));
    ++lefts.at(static_cast<size_t>(crop.left));
    mirrored += crop.mirror;
    moved += !(crop == random_crop(spec, 1, i));
    const Crop unmirrored = random_crop(spec_of(4, false), 0, i);
    EXPECT_EQ(unmirrored, (Crop{crop.top, crop.left, false}));
  }
  for (const int count : tops) EXPECT_NEAR(count, 1000, 130);
  for (const int count : lefts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_NEAR(mirrored, 4500, 200);
  EXPECT_GT(moved, 8800);  // 1/162 of the crops repeat by chance
}

TEST(Augment, RefusesBadStatistics) {
  const TensorDesc desc{DType::f32, {1, 3, 8, 6}, {}};
  AugmentSpec spec = spec_of(0, false);
  spec.normalization.mean.pop_back();
  EXPECT_THROW(Augment(spec, kImage, desc), ConfigError);
  spec = spec_of(0, false);
  spec.normalization.deviation[1] = 0;
  EXPECT_THROW(Augment(spec, kImage, desc), ConfigError);
  EXPECT_THROW(Augment(spec_of(-1, false), kImage, desc), ConfigError);
  EXPECT_THROW(Augment(spec_of(0, false), kImage, {DType::f32, {1, 3, 6, 8}, {}}), InternalError);
}

}  // namespace
}  // namespace tutti::data
