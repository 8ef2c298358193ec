// Compares decoding and resampling with the results of PIL 13 (libjpeg-turbo 3, libpng 1.6) for the
// files of tests/fuzz/corpus.

#include "tutti/data/images/coded_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/data/file_checks.h"
#include "tutti/data/images/jpeg_encoder.h"
#include "tutti/data/images/resample.h"
#include "tutti/data/transform/image_field.h"

namespace tutti::data {
namespace {

/// Returns a channel of a pixel of the whole image.
int channel_at(const DecodedImage& image, int64_t y, int64_t x, size_t c) {
  return image
      .rgbx[static_cast<size_t>((y - image.top) * image.size.width + x - image.left) * 4 + c];
}

/// Returns waves and slopes, with no flat region.
std::vector<uint8_t> wave_pixels(const ImageSize& size, int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < size.height; ++y)
    for (int64_t x = 0; x < size.width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        pixels.push_back(static_cast<uint8_t>(128 + 60 * std::sin(0.11 * double(x * (c + 1))) +
                                              50 * std::cos(0.07 * double(y + 3 * c))));
  return pixels;
}

TEST(CodedImage, DecodesWhatPilDecodes) {
  struct Known {
    const char* file;
    std::array<int, 12> pixels;  // at (0, 0), (17, 21), (35, 43), (8, 30)
  };
  const Known known[] = {
      {"jpeg/rgb.jpg", {0, 170, 0, 139, 67, 117, 23, 209, 232, 170, 69, 59}},
      {"jpeg/progressive.jpg", {0, 170, 0, 139, 67, 117, 23, 209, 232, 170, 69, 59}},
      {"jpeg/grey.jpg", {99, 99, 99, 94, 94, 94, 156, 156, 156, 98, 98, 98}},
      {"jpeg/cmyk.jpg", {1, 168, 0, 139, 68, 119, 28, 204, 244, 167, 69, 56}},
      {"jpeg/s444.jpg", {1, 168, 0, 137, 67, 119, 27, 204, 245, 170, 70, 55}},
      {"png/rgb.png", {0, 168, 0, 139, 68, 119, 29, 204, 245, 166, 69, 56}},
      {"png/grey.png", {99, 99, 99, 95, 95, 95, 156, 156, 156, 97, 97, 97}},
      {"png/palette.png", {0, 153, 0, 153, 51, 153, 51, 204, 255, 153, 51, 51}},
      {"png/rgba.png", {0, 168, 0, 139, 68, 119, 29, 204, 245, 166, 69, 56}},
      {"png/bits.png", {0, 0, 0, 0, 0, 0, 255, 255, 255, 0, 0, 0}}};
  constexpr int64_t kPlaces[4][2] = {{0, 0}, {17, 21}, {35, 43}, {8, 30}};
  for (const Known& one : known) {
    const std::vector<uint8_t> coded = read_all(corpus_file(one.file));
    EXPECT_EQ(image_size(coded), (ImageSize{36, 44})) << one.file;
    DecodedImage image;
    decode_whole(coded, one.file, image);
    for (size_t p = 0; p < 4; ++p)
      for (size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(channel_at(image, kPlaces[p][0], kPlaces[p][1], c), one.pixels[p * 3 + c], 2)
            << one.file << " place " << p << " channel " << c;
  }
}

TEST(CodedImage, AWindowHasThePixelsOfTheWhole) {
  const ImageSize size{203, 317};
  for (const int channels : {1, 3, 4})
    for (const bool progressive : {false, true}) {
      const std::vector<uint8_t> coded =
          encode_jpeg(wave_pixels(size, channels), size, channels, {.progressive = progressive});
      for (const int eighths : {1, 2, 4, 8}) {
        DecodedImage whole, part;
        decode_image(coded, {0, 0, size.height, size.width}, eighths, whole);
        ASSERT_EQ(whole.size, whole.whole);
        for (const ImageWindow& window :
             {ImageWindow{64, 90, 77, 101}, ImageWindow{0, 250, 203, 67},
              ImageWindow{180, 0, 23, 9}, ImageWindow{101, 155, 1, 1}}) {
          decode_image(coded, window, eighths, part);
          EXPECT_EQ(part.whole, whole.size);
          const int64_t top = window.top * eighths / 8, left = window.left * eighths / 8;
          const int64_t bottom =
                            std::min((window.top + window.height) * eighths / 8, part.whole.height),
                        right =
                            std::min((window.left + window.width) * eighths / 8, part.whole.width);
          ASSERT_TRUE(part.top <= top && part.left <= left &&
                      part.top + part.size.height >= bottom &&
                      part.left + part.size.width >= right);
          int worst = 0;
          for (int64_t y = top; y < bottom; ++y)
            for (int64_t x = left; x < right; ++x)
              for (size_t c = 0; c < 3; ++c)
                worst = std::max(worst,
                                 std::abs(channel_at(part, y, x, c) - channel_at(whole, y, x, c)));
          EXPECT_EQ(worst, 0) << channels << " channels, " << eighths << " eighths, progressive "
                              << progressive << ", window from " << window.top << ", "
                              << window.left;
        }
      }
    }
}

TEST(CodedImage, ScalesAreTheSmallestThatCover) {
  EXPECT_EQ(smallest_scale(448, 448, {224, 224}), 4);
  EXPECT_EQ(smallest_scale(447, 900, {224, 224}), 8);
  EXPECT_EQ(smallest_scale(1792, 1800, {224, 224}), 1);
  EXPECT_EQ(smallest_scale(100, 100, {224, 224}), 8);
}

TEST(CodedImage, SaysWhatIsWrong) {
  const std::vector<uint8_t> jpeg = read_all(corpus_file("jpeg/rgb.jpg")),
                             png = read_all(corpus_file("png/rgb.png"));
  const auto refused = [](std::vector<uint8_t> coded, const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.push_back("a.jpg");
    DecodedImage image;
    expect_io_error([&] { decode_whole(coded, "a.jpg", image); }, all);
  };
  refused({}, {"is empty"});
  refused({'G', 'I', 'F', '8'}, {"neither a JPEG nor a PNG"});
  refused({jpeg.begin(), jpeg.begin() + 500}, {"JPEG"});
  refused({jpeg.begin(), jpeg.end() - 100}, {"truncated or corrupted", "JPEG"});
  refused({png.begin(), png.end() - 60}, {"truncated or corrupted"});
  refused(flipped(png, png.size() / 2, 0x55), {"truncated or corrupted"});
  // Each prefix gives a result or an error, and never ends the process.
  for (size_t length = 0; length < jpeg.size(); length += 7) {
    DecodedImage image;
    EXPECT_THROW(decode_whole(std::span(jpeg).first(length), "a.jpg", image), IoError) << length;
  }
  // These bytes make the size 65535 x 65535.
  std::vector<uint8_t> large = jpeg;
  const std::array<uint8_t, 2> marker = {0xFF, 0xC0};
  const auto frame = std::search(large.begin(), large.end(), marker.begin(), marker.end());
  std::fill_n(frame + 5, 4, uint8_t{0xFF});
  refused(large, {"65", "pixels"});
}

TEST(Resample, IsPilsBilinear) {
  DecodedImage image;
  decode_whole(read_all(corpus_file("png/rgb.png")), "rgb.png", image);
  const auto compare = [&](const ImageBox& box, const ImageWindow& bounds, const ImageSize& size,
                           int64_t step_y, int64_t step_x, const std::vector<int>& expected) {
    std::vector<uint8_t> out(static_cast<size_t>(3 * size.height * size.width));
    resample(image, box, bounds, size, out.data());
    size_t next = 0;
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < size.height; y += step_y)
        for (int64_t x = 0; x < size.width; x += step_x)
          EXPECT_NEAR(out[static_cast<size_t>((c * size.height + y) * size.width + x)],
                      expected.at(next++), 1)
              << "channel " << c << " at " << y << ", " << x;
    EXPECT_EQ(next, expected.size());
  };
  const ImageWindow all{0, 0, 36, 44};
  compare({2, 3, 33, 38}, all, {5, 7}, 1, 1,
          {36,  63,  90,  118, 145, 172, 199, 49,  76,  103, 131, 158, 185, 212, 62,  89,  116, 144,
           171, 198, 224, 75,  102, 129, 157, 184, 211, 217, 88,  115, 142, 170, 197, 224, 161, 190,
           202, 172, 123, 92,  103, 148, 148, 160, 130, 81,  50,  61,  106, 139, 151, 122, 73,  42,
           53,  98,  178, 190, 160, 111, 80,  91,  136, 206, 218, 188, 139, 108, 119, 164, 34,  34,
           34,  34,  34,  34,  34,  80,  80,  80,  80,  80,  80,  80,  126, 126, 126, 126, 126, 126,
           126, 172, 172, 172, 172, 172, 172, 172, 216, 216, 216, 216, 216, 216, 216});
  compare({0, 0, 36, 44}, all, {50, 60}, 12, 15,
          {0,   54, 109, 164, 17,  71,  126, 181, 34,  88,  143, 198, 52,  106, 161,
           216, 69, 123, 178, 233, 168, 225, 138, 124, 122, 180, 93,  79,  89,  147,
           60,  45, 144, 202, 115, 101, 160, 218, 131, 117, 0,   0,   0,   0,   60,
           60,  60, 60,  120, 120, 120, 120, 180, 180, 180, 180, 241, 241, 241, 241});
}

TEST(ResizedCrop, EvaluationIsTorchvisionsResizeAndCentreCrop) {
  const Field field{.name = "image", .coded = true};
  const ImageField crop(field, parse_steps("image: resized-crop 16 of 20").derivation);
  EXPECT_EQ(crop.field().shape, (Shape{3, 16, 16}));
  const uint8_t* out = crop.make(read_all(corpus_file("png/rgb.png")), "rgb.png", nullptr);
  const std::vector<int> expected = {47,  93,  138, 184, 65,  111, 156, 202, 83,  129, 174, 220,
                                     101, 147, 192, 238, 213, 174, 100, 131, 151, 112, 38,  69,
                                     173, 134, 60,  91,  225, 186, 112, 143, 28,  28,  28,  28,
                                     91,  91,  91,  91,  154, 154, 154, 154, 217, 217, 217, 217};
  size_t next = 0;
  for (size_t c = 0; c < 3; ++c)
    for (size_t y = 0; y < 16; y += 5)
      for (size_t x = 0; x < 16; x += 5)
        EXPECT_NEAR(out[(c * 16 + y) * 16 + x], expected[next++], 1) << c << " " << y << " " << x;
}

TEST(ResizedCrop, PartsLieInTheImageAndDependOnTheSampleAlone) {
  const ResizedCrop crop = *parse_steps("image: resized-crop 224").derivation.resized;
  EXPECT_EQ(crop.shorter, 256);
  double least = 1, greatest = 0;
  for (int64_t index = 0; index < 3000; ++index) {
    const ImageSize size{300 + index % 200, 400};
    const TakenPart part = random_part(crop, size, Chance(1, 2, index)),
                    again = random_part(crop, size, Chance(1, 2, index));
    EXPECT_EQ(part.box.top, again.box.top);
    EXPECT_EQ(part.box.width, again.box.width);
    ASSERT_TRUE(part.bounds.top >= 0 && part.bounds.left >= 0 &&
                part.bounds.top + part.bounds.height <= size.height &&
                part.bounds.left + part.bounds.width <= size.width);
    const double share = part.box.height * part.box.width / double(size.height * size.width),
                 aspect = part.box.width / part.box.height;
    least = std::min(least, share);
    greatest = std::max(greatest, share);
    ASSERT_TRUE(aspect > 0.74 && aspect < 1.35) << aspect;
  }
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_GT(greatest, 0.95);
  EXPECT_NE(random_part(crop, {300, 400}, Chance(1, 2, 3)).box.width,
            random_part(crop, {300, 400}, Chance(1, 3, 3)).box.width);
  // No crop of such an aspect fits, so the middle is taken, as in torchvision.
  const TakenPart narrow = random_part(crop, {1000, 10}, Chance(1, 2, 3));
  EXPECT_EQ(narrow.box.width, 10);
  EXPECT_EQ(narrow.box.height, 13);
  EXPECT_EQ(narrow.box.top, 493);
}

TEST(ResizedCrop, SaysWhatDoesNotFit) {
  const Field coded{.name = "image", .coded = true}, pixels{.name = "image", .shape = {3, 8, 8}};
  expect_config_error([&] { ImageField(coded, {}); }, {"'image'", "resized-crop 224"});
  expect_config_error([&] { ImageField(pixels, parse_steps("image: resized-crop 4").derivation); },
                      {"'image'", "coded images"});
  for (const char* text :
       {"image: resized-crop", "image: resized-crop 0", "image: resized-crop 224 of 200",
        "image: resized-crop 8 area 0.5", "image: resized-crop 8 area 0.5 2",
        "image: resized-crop 8 aspect 2 1", "image: resized-crop 8 of 9 of 9",
        "image: resized-crop 8 around 3", "image: flip x, resized-crop 8",
        "image: resized-crop 8, resized-crop 8", "image: resized-crop 8, contacts 3"})
    expect_config_error([&] { parse_steps(text); }, {"resized-crop"});
}

TEST(ResizedCrop, DamagedImagesAreNamed) {
  const Field field{.name = "image", .coded = true};
  const ImageField crop(field, parse_steps("image: resized-crop 16").derivation);
  const std::vector<uint8_t> coded = read_all(corpus_file("jpeg/truncated.jpg"));
  expect_io_error([&] { crop.make(coded, "train/ants/a.jpg", nullptr); },
                  {"train/ants/a.jpg", "truncated", "tutti data verify"});
}

}  // namespace
}  // namespace tutti::data
