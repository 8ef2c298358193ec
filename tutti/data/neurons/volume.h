#pragma once
// A Volume is a volume from an electron microscope, or any other, with the objects in it.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/element_type.h"

namespace tutti::data {

/// Extents or a place along z, y and x.
using Voxels3 = std::array<int64_t, 3>;

constexpr int64_t product(const Voxels3& extents) { return extents[0] * extents[1] * extents[2]; }

struct Volume {
  std::string name;  ///< the file
  Voxels3 extents{};
  ElementType element = ElementType::u8;
  std::vector<uint8_t> image;    ///< row-major
  std::vector<uint32_t> labels;  ///< objects are numbered 1, 2 ... in the order of appearance; 0:
                                 ///< none. Empty: not known
};

/// Holds the lines of data.fields for the image and the labels; by default "image: from raw" and
/// "label: from labels". ConfigError for other fields, or words after the array's name.
struct VolumeArrays {
  std::string image = "raw", labels = "labels";
};
VolumeArrays volume_arrays(std::span<const FieldLine> lines);

/// Reads arrays of three axes, not counting axes of extent 1. BadFile naming the file and the
/// fault: another number of axes, labels that are no whole numbers or have other extents, values
/// that are not finite. Without `labels` it reads only the image.
Volume read_volume(const std::filesystem::path& path, const VolumeArrays& arrays,
                   bool labels = true);
/// Says whether the file has labels.
bool has_labels(const std::filesystem::path& path, const VolumeArrays& arrays);

}  // namespace tutti::data
