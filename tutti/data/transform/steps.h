#pragma once
// Steps: what happens to a field between the file and the network, as the configuration says it.
//
//   "image: permute 2 0 1, crop pad 4, flip x, divide 255, normalise"
//
// First the steps that make another field of the whole one (derived_field.h):
//   periodic                   the last three points of coordinates are the vectors of a unit cell
//                              (molecules/unit_cell.h), and contacts are those of nearest images;
//                              before select and contacts
//   select ATOMS of FILE       of coordinates [atoms, 3] those of atoms (selection.h) of the
//                              topology FILE: [selected, 3]; a path with blanks or commas in '...',
//                              where '' is a quote
//   resized-crop H [W] [of N] [area A B] [aspect A B]
//                              of a coded image a part of it, scaled to [3, H, W]; in training one
//                              of a share A to B of its area and a ratio of width to height of A
//                              to B, otherwise the middle of the image with its shorter side
//                              scaled to N
//   contacts R                 of coordinates [n, 3] the map [1, n, n]: 1 where two points are at
//                              most R apart, else 0
// Then the steps that move elements, then those that change values.
//   permute A B ...            axis k of the result is axis A, B ... of the stored field
//   crop E ... [pad N]         a window of these extents of the last axes (none given: of the size
//                              it has) of the field with N zeros on every side of these axes (none
//                              given: x and y); random in training, in the middle otherwise
//   flip AXIS ...              in training, mirrored along each axis with probability 1/2
//   symmetries AXIS ...        in training, one of the symmetries of the square (x y) or cube
//                              (x y z), which must have equal sides
//   divide A, multiply A, add A; clip LOW HIGH; log1p: log(1 + x)
//   normalise [mean A ... std B ...]     (x - mean) / std of each channel, or one for all
//   min-max [min A ... max B ...]        (x - min) / (max - min)
//                              without numbers: the data set's own, over its training samples
// x is the last axis, y the one before, z the one before that; a channel is an index of the first
// axis.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/field.h"

namespace tutti::data {

/// Bit a: the axis that is a-th from the last.
using Axes = uint8_t;
inline constexpr int kMostAxes = 3;

/// A part of a coded image, scaled to a fixed size.
struct ResizedCrop {
  int64_t height = 0, width = 0;
  int64_t shorter = 0;  ///< side of the image that evaluation takes the middle of
  float least_area = 0.08f, greatest_area = 1;
  float least_aspect = 0.75f, greatest_aspect = 4.0f / 3;
};

/// The steps that make another field: u8 of a coded image, otherwise f32.
struct Derivation {
  bool periodic = false;
  std::optional<ResizedCrop> resized{};
  std::string selection{}, topology{};  ///< select; empty: all points
  std::optional<float> radius{};        ///< contacts, after that

  bool is_identity() const { return !resized && !periodic && selection.empty() && !radius; }
};

/// The steps that move elements. Of each kind a field has one at most.
struct Placement {
  std::vector<int> permute;  ///< empty: as stored
  bool crops = false;
  std::vector<int64_t> extents;  ///< of the crop, of the last axes; empty: as large as it is
  int64_t pad = 0;
  Axes flip = 0, symmetries = 0;

  bool is_identity() const { return permute.empty() && !has_chance(); }
  bool has_chance() const { return crops || flip != 0 || symmetries != 0; }
};

/// One change of values. Numbers: one, or one for each channel.
struct ValueStep {
  enum class Kind : uint8_t { divide, multiply, add, clip, log1p, normalise, min_max } kind;
  std::vector<float> first, second;  ///< mean and deviation, least and greatest, low and high
};

struct FieldSteps {
  std::string field;
  Derivation derivation{};
  Placement placement{};
  std::vector<ValueStep> values{};
};

/// ConfigError naming the text and the word that cannot be understood.
FieldSteps parse_steps(std::string_view text);

/// `text` with the path of its topology, where it has one, as `place` gives it.
std::string with_topology(std::string_view text,
                          const std::function<std::string(const std::string&)>& place);

/// The shape in which a field leaves its placement; `stored`: as its derivation leaves it.
/// ConfigError naming the field where a step does not fit.
Shape placed_shape(const Field& stored, const Placement& placement);

}  // namespace tutti::data
