#include "tutti/data/transform/image_field.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

/// Memory that a thread keeps between images, to avoid allocations.
struct ImageMemory {
  DecodedImage decoded;
  std::vector<uint8_t> pixels;
};

ImageMemory& memory_of_thread() {
  thread_local ImageMemory memory;
  return memory;
}

TakenPart part_at(int64_t top, int64_t left, int64_t height, int64_t width) {
  return {.box = {.top = static_cast<double>(top),
                  .left = static_cast<double>(left),
                  .height = static_cast<double>(height),
                  .width = static_cast<double>(width)},
          .bounds = {top, left, height, width}};
}

/// Returns the image pixels that the box needs, including neighbours within reach of the weights.
ImageWindow needed(const TakenPart& part, const ImageSize& made, const ImageSize& image) {
  const auto along = [](double begin, double extent, int64_t outputs, int64_t low, int64_t count) {
    const double reach = std::max(extent / static_cast<double>(outputs), 1.0) + 1;
    const int64_t first = std::max(low, static_cast<int64_t>(std::floor(begin - reach)));
    const int64_t last =
        std::min(low + count, static_cast<int64_t>(std::ceil(begin + extent + reach)));
    return std::pair(first, std::max<int64_t>(last - first, 1));
  };
  const auto [top, height] = along(part.box.top, part.box.height, made.height, part.bounds.top,
                                   std::min(part.bounds.height, image.height));
  const auto [left, width] = along(part.box.left, part.box.width, made.width, part.bounds.left,
                                   std::min(part.bounds.width, image.width));
  return {top, left, height, width};
}

/// Converts the part to pixels of an image that was decoded at a smaller scale.
void scale_part(TakenPart& part, const DecodedImage& image) {
  const double scale = image.eighths / 8.0;
  for (double* x : {&part.box.top, &part.box.left, &part.box.height, &part.box.width}) *x *= scale;
  const auto along = [&](int64_t& first, int64_t& count, int64_t whole) {
    const int64_t begin = first * image.eighths / 8,
                  end = std::min((first + count) * image.eighths / 8 +
                                     ((first + count) * image.eighths % 8 != 0 ? 1 : 0),
                                 whole);
    first = std::min(begin, whole - 1);
    count = std::max<int64_t>(end - first, 1);
  };
  along(part.bounds.top, part.bounds.height, image.whole.height);
  along(part.bounds.left, part.bounds.width, image.whole.width);
}

}  // namespace

TakenPart random_part(const ResizedCrop& crop, const ImageSize& image, const Chance& chance) {
  constexpr int kAttempts = 10;
  Rng rng = chance.window();
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  const double low = std::log(crop.least_aspect), high = std::log(crop.greatest_aspect);
  for (int i = 0; i < kAttempts; ++i) {
    const double wanted = area * (crop.least_area + (crop.greatest_area - crop.least_area) *
                                                        static_cast<double>(rng.uniform()));
    const double aspect = std::exp(low + (high - low) * static_cast<double>(rng.uniform()));
    const auto width = static_cast<int64_t>(std::lround(std::sqrt(wanted * aspect)));
    const auto height = static_cast<int64_t>(std::lround(std::sqrt(wanted / aspect)));
    const uint32_t down = rng.next_u32(), across = rng.next_u32();
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    const auto place = [](uint32_t draw, int64_t room) {
      return static_cast<int64_t>(uint64_t{draw} * static_cast<uint64_t>(room) >> 32);
    };
    return part_at(place(down, image.height - height + 1), place(across, image.width - width + 1),
                   height, width);
  }
  const double ratio = static_cast<double>(image.width) / static_cast<double>(image.height);
  int64_t height = image.height, width = image.width;
  if (ratio < crop.least_aspect)
    height = std::lround(static_cast<double>(width) / crop.least_aspect);
  else if (ratio > crop.greatest_aspect)
    width = std::lround(static_cast<double>(height) * crop.greatest_aspect);
  height = std::clamp<int64_t>(height, 1, image.height);
  width = std::clamp<int64_t>(width, 1, image.width);
  return part_at((image.height - height) / 2, (image.width - width) / 2, height, width);
}

TakenPart middle_part(const ResizedCrop& crop, const ImageSize& image) {
  const int64_t shorter = std::min(image.height, image.width);
  const int64_t height =
      image.height == shorter ? crop.shorter : crop.shorter * image.height / shorter;
  const int64_t width =
      image.width == shorter ? crop.shorter : crop.shorter * image.width / shorter;
  const auto middle = [](int64_t whole, int64_t part) {  // torchvision's int(round(x / 2))
    return std::nearbyint(static_cast<double>(whole - part) / 2);
  };
  const double down = static_cast<double>(image.height) / static_cast<double>(height);
  const double across = static_cast<double>(image.width) / static_cast<double>(width);
  return {.box = {.top = middle(height, crop.height) * down,
                  .left = middle(width, crop.width) * across,
                  .height = static_cast<double>(crop.height) * down,
                  .width = static_cast<double>(crop.width) * across},
          .bounds = {0, 0, image.height, image.width}};
}

ImageField::ImageField(const Field& stored, const Derivation& derivation) : made_(stored) {
  if (!derivation.resized)
    throw ConfigError(
        fmt::format("data.transforms: the field '{0}' holds coded images of any size: its line "
                    "must begin with the size that the network takes, as in \"{0}: resized-crop "
                    "224, flip x, divide 255, normalise\"",
                    stored.name));
  if (!stored.coded)
    throw ConfigError(fmt::format(
        "data.transforms: the field '{}' ({}) has the step resized-crop, which takes coded images "
        "(JPEG, PNG): 'crop' takes a window of a field whose size is known",
        stored.name, stored.to_string()));
  crop_ = *derivation.resized;
  made_.coded = false;
  made_.shape = {3, crop_.height, crop_.width};
}

const uint8_t* ImageField::make(std::span<const uint8_t> coded, const std::string& origin,
                                const Chance* chance) const {
  ImageMemory& memory = memory_of_thread();
  const ImageSize made{crop_.height, crop_.width};
  memory.pixels.resize(static_cast<size_t>(made_.elements()));
  try {
    const ImageSize size = image_size(coded);
    TakenPart part =
        chance != nullptr ? random_part(crop_, size, *chance) : middle_part(crop_, size);
    decode_image(coded, needed(part, made, size),
                 smallest_scale(part.box.height, part.box.width, made), memory.decoded);
    scale_part(part, memory.decoded);
    resample(memory.decoded, part.box, part.bounds, made, memory.pixels.data());
  } catch (const BadFile& error) {
    throw BadFile(
        "{} {}: fetch the file again, or take it out of the data set; 'tutti data verify' finds "
        "all such files",
        origin, error.what());
  }
  return memory.pixels.data();
}

}  // namespace tutti::data
