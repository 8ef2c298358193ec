#include "tutti/data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti::data {
namespace {

std::vector<int64_t> offsets_along(const TensorDesc& desc, int dim) {
  std::vector<int64_t> offsets;
  std::array<int64_t, Shape::kMaxRank> index{};
  for (auto& at = index[static_cast<size_t>(dim)]; at < desc.shape[dim]; ++at)
    offsets.push_back(desc.layout.offset(desc.shape, index.data()));
  return offsets;
}

int64_t common_stride(const std::vector<int64_t>& offsets) {
  const int64_t stride = offsets.size() > 1 ? offsets[1] : 1;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<int64_t>(i) * stride) return 0;
  return stride;
}

// Destination columns: contiguous, evenly spaced, or from a table. Types, so that each gets its own
// inner loop.
struct Contiguous {
  int64_t operator()(int x) const { return x; }
};
struct Strided {
  int64_t stride;
  int64_t operator()(int x) const { return x * stride; }
};
struct Tabled {
  const int64_t* offsets;
  int64_t operator()(int x) const { return offsets[x]; }
};

// Columns [first, last) of the destination lie inside the source row and read source[at + x] or,
// mirrored, source[at - x].
struct Columns {
  int first, last, width, at;
  bool mirror;
};

Columns visible_columns(const Crop& crop, int pad, int width) {
  // Unmirrored column x reads source column x + left - pad; mirrored, width - 1 - x takes the place
  // of x.
  const int shift = crop.left - pad;
  const int first = std::clamp(-shift, 0, width), last = std::clamp(width - shift, 0, width);
  if (!crop.mirror) return {first, last, width, shift, false};
  return {width - last, width - first, width, width - 1 + shift, true};
}

template <class T, class Column>
void write_row(const uint8_t* source, const T* table, const Columns& columns, Column column,
               T* out) {
  const T zero = table[0];
  for (int x = 0; x < columns.first; ++x) out[column(x)] = zero;
  if (columns.mirror)
    for (int x = columns.first; x < columns.last; ++x)
      out[column(x)] = table[source[columns.at - x]];
  else
    for (int x = columns.first; x < columns.last; ++x)
      out[column(x)] = table[source[columns.at + x]];
  for (int x = columns.last; x < columns.width; ++x) out[column(x)] = zero;
}

}  // namespace

Crop random_crop(const AugmentSpec& spec, int64_t epoch, int64_t index) {
  Rng rng(spec.seed, Purpose::augment,
          static_cast<uint64_t>(epoch) << 40 | static_cast<uint64_t>(index));
  const auto window = static_cast<uint32_t>(2 * spec.pad + 1);
  Crop crop;  // always three draws, so that switching one augmentation off leaves the others as
              // they were
  crop.top = static_cast<int>(rng.below(window));
  crop.left = static_cast<int>(rng.below(window));
  crop.mirror = rng.below(2) == 1 && spec.flip;
  return crop;
}

Augment::Augment(const AugmentSpec& spec, const ImageShape& image, const TensorDesc& batch)
    : spec_(spec), image_(image), batch_(batch) {
  const auto channels = static_cast<size_t>(image.channels);
  const auto& [mean, deviation] = spec.normalization;
  if (mean.size() != channels || deviation.size() != channels)
    throw ConfigError(
        fmt::format("normalisation has {} means and {} deviations; the images have {} channels: "
                    "give one of each per channel",
                    mean.size(), deviation.size(), channels));
  for (size_t c = 0; c < channels; ++c)
    if (!std::isfinite(mean[c]) || !(deviation[c] > 0))
      throw ConfigError(
          fmt::format("normalisation of channel {}: mean {} and deviation {} must be finite, the "
                      "deviation positive",
                      c, mean[c], deviation[c]));
  if (spec.pad < 0)
    throw ConfigError(fmt::format("crop padding {} must not be negative", spec.pad));
  CHECK(batch.shape == (Shape{batch.shape[0], image.channels, image.height, image.width}),
        "a batch {} for images {}x{}x{}", batch.to_string(), image.channels, image.height,
        image.width);
  CHECK(batch.dtype == DType::f32 || batch.dtype == DType::bf16, "a batch of {}",
        name_of(batch.dtype));

  for (size_t c = 0; c < channels; ++c)
    for (int x = 0; x < 256; ++x)
      floats_.push_back((static_cast<float>(x) / 255.0f - mean[c]) / deviation[c]);
  if (batch.dtype == DType::bf16) {
    for (const float y : floats_) halves_.emplace_back(y);
    floats_.clear();
  }
  image_offset_ = offsets_along(batch, 0);
  channel_offset_ = offsets_along(batch, 1);
  row_offset_ = offsets_along(batch, 2);
  column_offset_ = offsets_along(batch, 3);
  column_stride_ = common_stride(column_offset_);
}

void Augment::write(const uint8_t* pixels, const Crop& crop, int64_t position, void* batch) const {
  const auto [channels, height, width] = image_;
  const Columns columns = visible_columns(crop, spec_.pad, width);
  const Columns outside{width, width, width, 0, false};

  const auto write_all = [&]<class T, class Column>(const std::vector<T>& tables, Column column) {
    for (int c = 0; c < channels; ++c) {
      const T* table = tables.data() + 256 * c;
      T* plane = static_cast<T*>(batch) + image_offset_[static_cast<size_t>(position)] +
                 channel_offset_[static_cast<size_t>(c)];
      for (int y = 0; y < height; ++y) {
        const int from = y + crop.top - spec_.pad;
        const bool inside = from >= 0 && from < height;
        const uint8_t* source = pixels + (int64_t{c} * height + (inside ? from : 0)) * width;
        write_row(source, table, inside ? columns : outside, column,
                  plane + row_offset_[static_cast<size_t>(y)]);
      }
    }
  };
  const auto write_as = [&](const auto& tables) {
    if (column_stride_ == 1)
      write_all(tables, Contiguous{});
    else if (column_stride_ > 0)
      write_all(tables, Strided{column_stride_});
    else
      write_all(tables, Tabled{column_offset_.data()});
  };
  if (batch_.dtype == DType::f32)
    write_as(floats_);
  else
    write_as(halves_);
}

}  // namespace tutti::data
