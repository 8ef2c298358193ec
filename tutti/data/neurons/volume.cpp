#include "tutti/data/neurons/volume.h"

#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

Voxels3 extents_of_volume(const ArrayFile& file, const ArrayInfo& info) {
  std::vector<int64_t> extents;
  for (const int64_t extent : info.shape)
    if (extent != 1 || info.shape.size() <= 3) extents.push_back(extent);
  if (extents.size() != 3)
    throw BadFile(
        "{}: the array '{}' has the extents [{}]: a volume has three axes, z, y and x; name "
        "another array in data.fields",
        file.name(), info.name, fmt::join(info.shape, ", "));
  return {extents[0], extents[1], extents[2]};
}

std::vector<uint8_t> all_of(const ArrayFile& file, size_t array) {
  const ArrayInfo& info = file.arrays()[array];
  if (value_coding(info).scaled())
    throw BadFile(
        "{}: the array '{}' is packed by scale_factor or add_offset, which volumes do not undo: "
        "save its values unpacked",
        file.name(), info.name);
  std::vector<uint8_t> bytes(static_cast<size_t>(info.bytes()));
  file.read(array, Slab::all(info), bytes.data());
  return bytes;
}

void require_finite_image(const Volume& volume) {
  if (is_integer(volume.element)) return;
  with_elements(volume.element, volume.image.data(), [&](const auto* values) {
    for (int64_t i = 0; i < product(volume.extents); ++i)
      if (!std::isfinite(static_cast<float>(values[i])))
        throw BadFile("{}: voxel {} of the image is not finite", volume.name, i);
  });
}

/// Renumbers objects consecutively. Numbers below 1 are no objects.
std::vector<uint32_t> numbered(const ArrayFile& file, size_t array) {
  const ArrayInfo& info = file.arrays()[array];
  if (!is_integer(info.type))
    throw BadFile("{}: the labels '{}' are {}: objects have whole numbers", file.name(), info.name,
                  name_of(info.type));
  const std::vector<uint8_t> bytes = all_of(file, array);
  std::vector<uint32_t> labels(static_cast<size_t>(info.elements()));
  std::unordered_map<uint64_t, uint32_t> number;
  with_elements(info.type, bytes.data(), [&](const auto* values) {
    using T = std::remove_cvref_t<decltype(*values)>;
    if constexpr (std::is_integral_v<T>) {
      T last = 0;
      uint32_t its = 0;
      for (size_t i = 0; i < labels.size(); ++i) {
        if (values[i] != last) {
          last = values[i];
          its = last < 1 ? 0
                         : number
                               .try_emplace(static_cast<uint64_t>(last),
                                            static_cast<uint32_t>(number.size() + 1))
                               .first->second;
        }
        labels[i] = its;
      }
    }
  });
  return labels;
}

}  // namespace

VolumeArrays volume_arrays(std::span<const FieldLine> lines) {
  VolumeArrays arrays;
  for (const FieldLine& line : lines) {
    if (line.field != "image" && line.field != "label")
      throw ConfigError(fmt::format(
          "data.fields: the volumes of neurons have the fields image and label, not '{}'",
          line.field));
    if (line.arrays.size() != 1 || line.place != FieldLine::Place::unset || line.type ||
        line.shape || line.missing || !line.class_names.empty())
      throw ConfigError(fmt::format(
          "data.fields: of a volume of neurons a line names one array, as in \"{}: from raw\"",
          line.field));
    (line.field == "image" ? arrays.image : arrays.labels) = line.arrays.front();
  }
  return arrays;
}

bool has_labels(const std::filesystem::path& path, const VolumeArrays& arrays) {
  return open_array_file(path).holds(arrays.labels);
}

Volume read_volume(const std::filesystem::path& path, const VolumeArrays& arrays, bool labels) {
  const ArrayFile file = open_array_file(path);
  const size_t image = file.find(arrays.image);
  Volume volume{.name = path.string(),
                .extents = extents_of_volume(file, file.arrays()[image]),
                .element = file.arrays()[image].type,
                .image = {},
                .labels = {}};
  if (labels) {
    const size_t objects = file.find(arrays.labels);
    if (extents_of_volume(file, file.arrays()[objects]) != volume.extents)
      throw BadFile("{}: the image has the extents [{}], its labels [{}]", volume.name,
                    fmt::join(file.arrays()[image].shape, ", "),
                    fmt::join(file.arrays()[objects].shape, ", "));
    volume.labels = numbered(file, objects);
  }
  volume.image = all_of(file, image);
  require_finite_image(volume);
  return volume;
}

}  // namespace tutti::data
