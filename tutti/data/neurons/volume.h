#pragma once
// A volume of an electron microscope, or of any other, and the objects in it.

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
  std::vector<uint32_t> labels;  ///< 1, 2 ... number the objects in the order in which they are
                                 ///< met; 0: none. Empty: not known
};

/// The lines of data.fields for the image and the labels; those that are not given: "image: from
/// raw" and "label: from labels". ConfigError for other fields, or words behind the array's name.
struct VolumeArrays {
  std::string image = "raw", labels = "labels";
};
VolumeArrays volume_arrays(std::span<const FieldLine> lines);

/// Arrays of three axes, extents of 1 aside. BadFile naming the file and what is wrong: another
/// number of axes, labels that are no whole numbers or of other extents, values that are not
/// finite. Without `labels` an image alone.
Volume read_volume(const std::filesystem::path& path, const VolumeArrays& arrays,
                   bool labels = true);
/// Whether the file has labels.
bool has_labels(const std::filesystem::path& path, const VolumeArrays& arrays);

}  // namespace tutti::data
