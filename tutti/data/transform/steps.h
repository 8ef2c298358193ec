#pragma once
// Steps change a field between the file and the network, as the configuration says:
//
//   "image: permute 2 0 1, crop pad 4, flip x, divide 255, normalise"
//
// First the steps that make another field from the whole one (derived_field.h):
//   periodic                   the last three points of coordinates are the vectors of a unit cell
//                              (molecules/unit_cell.h), and contacts use nearest images;
//                              before select and contacts
//   select ATOMS of FILE       keeps the selected atoms (selection.h) of the topology FILE, from
//                              coordinates [atoms, 3] to [selected, 3]; a path with blanks or
//                              commas is put in '...', where '' is a quote
//   resized-crop H [W] [of N] [area A B] [aspect A B]
//                              scales a part of a coded image to [3, H, W]. Training takes a random
//                              part with A to B of the image's area and a ratio of width to height
//                              from A to B; otherwise the middle of the image is taken, with its
//                              shorter side scaled to N
//   contacts R                 turns coordinates [n, 3] into the map [1, n, n]: 1 where two points
//                              are at most R apart, else 0
// Then the steps that move elements, then the steps that change values.
//   permute A B ...            axis k of the result is axis A, B ... of the stored field
//   crop E ... [pad N]         a window with these extents along the last axes (default: its full
//                              size) from the field with N zeros on every side of these axes
//                              (default: x and y); random in training, otherwise centred
//   flip AXIS ...              in training, mirrors along each axis with probability 1/2
//   symmetries AXIS ...        in training, one of the symmetries of the square (x y) or cube
//                              (x y z), which must have equal sides
//   divide A, multiply A, add A; clip LOW HIGH; log1p: log(1 + x)
//   normalise [mean A ... std B ...]     (x - mean) / std for each channel, or one for all
//   min-max [min A ... max B ...]        (x - min) / (max - min)
//                              default numbers: the data set's own, over its training samples
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

/// Bit a stands for axis a, counted from the last one.
using Axes = uint8_t;
inline constexpr int kMostAxes = 3;

/// Scales a part of a coded image to a fixed size.
struct ResizedCrop {
  int64_t height = 0, width = 0;
  int64_t shorter = 0;  ///< scaled shorter side, whose middle evaluation takes
  float least_area = 0.08f, greatest_area = 1;
  float least_aspect = 0.75f, greatest_aspect = 4.0f / 3;
};

/// The steps that make another field: u8 from a coded image, otherwise f32.
struct Derivation {
  bool periodic = false;
  std::optional<ResizedCrop> resized{};
  std::string selection{}, topology{};  ///< select; empty: all points
  std::optional<float> radius{};        ///< contacts, applied after select

  bool is_identity() const { return !resized && !periodic && selection.empty() && !radius; }
};

/// The steps that move elements. A field has at most one of each kind.
struct Placement {
  std::vector<int> permute;  ///< empty: as stored
  bool crops = false;
  std::vector<int64_t> extents;  ///< extents of the crop, last axes; empty: the field's own
  int64_t pad = 0;
  Axes flip = 0, symmetries = 0;

  bool is_identity() const { return permute.empty() && !has_chance(); }
  bool has_chance() const { return crops || flip != 0 || symmetries != 0; }
};

/// One change of values, with one number, or one for each channel.
struct ValueStep {
  enum class Kind : uint8_t { divide, multiply, add, clip, log1p, normalise, min_max } kind;
  std::vector<float> first, second;  ///< mean and deviation, or least and greatest, or low and high
};

struct FieldSteps {
  std::string field;
  Derivation derivation{};
  Placement placement{};
  std::vector<ValueStep> values{};
};

/// Parses steps. ConfigError naming the text and the word that is not understood.
FieldSteps parse_steps(std::string_view text);

/// Returns `text` with the path of its topology, if there is one, replaced by `place`.
std::string with_topology(std::string_view text,
                          const std::function<std::string(const std::string&)>& place);

/// Returns a field's shape after its placement; `stored` is the field after its derivation.
/// ConfigError naming the field if a step does not fit.
Shape placed_shape(const Field& stored, const Placement& placement);

}  // namespace tutti::data
