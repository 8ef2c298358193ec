// Implements add_periodic_array() of frames.h.

#include <fmt/format.h>

#include <algorithm>

#include "tutti/data/format/array/frames.h"

namespace tutti::data {
namespace {

/// Coordinates, lengths and angles stored as arrays of one file.
class CellArrays final : public Frames {
 public:
  CellArrays(const FileBytes& file, StoredArray coordinates, StoredArray lengths,
             StoredArray angles)
      : Frames(file), coordinates_(std::move(coordinates)), lengths_(std::move(lengths)),
        angles_(std::move(angles)) {
    frames_ = coordinates_.info.shape[0];
    atoms_ = coordinates_.info.shape[1];
  }
  void read(int64_t frame, std::span<float> xyz) const override {
    read_row(coordinates_, frame, xyz);
  }
  bool has_cells() const override { return true; }
  UnitCell cell(int64_t frame, std::span<float>) const override {
    std::array<float, 3> lengths{}, angles{};
    read_row(lengths_, frame, lengths);
    read_row(angles_, frame, angles);
    if (lengths == std::array<float, 3>{}) return {};
    const auto wide = [](const std::array<float, 3>& x) {
      return std::array<double, 3>{double{x[0]}, double{x[1]}, double{x[2]}};
    };
    if (std::ranges::any_of(angles, [](float x) { return !(x > 0 && x < 180); }))
      refuse(frame, fmt::format("has a unit cell with the angles {} {} {}, expected degrees "
                                "between 0 and 180: read 'coordinates' without it",
                                angles[0], angles[1], angles[2]));
    return unit_cell_of(wide(lengths), wide(angles));
  }

 private:
  void read_row(const StoredArray& array, int64_t frame, std::span<float> out) const {
    const Slab row = Slab::rows(array.info, frame, 1);
    std::vector<uint8_t> bytes(out.size() * size_of(array.info.type));
    read_stored(array, file_.name(), row, bytes.data(), nullptr);
    to_f32(array.info.type, bytes.data(), std::ssize(out), out.data());
  }

  StoredArray coordinates_, lengths_, angles_;
};

const StoredArray* array_called(const std::vector<StoredArray>& arrays, std::string_view name) {
  const auto found = std::ranges::find_if(
      arrays, [&](const StoredArray& array) { return array.info.name == name; });
  return found == arrays.end() || !found->info.problem.empty() ? nullptr : &*found;
}

}  // namespace

void add_periodic_array(const FileBytes& file, std::vector<StoredArray>& arrays) {
  const StoredArray* coordinates = array_called(arrays, "coordinates");
  const StoredArray* lengths = array_called(arrays, "cell_lengths");
  const StoredArray* angles = array_called(arrays, "cell_angles");
  if (!coordinates || !lengths || !angles || array_called(arrays, kPeriodicArray)) return;
  const std::vector<int64_t>& shape = coordinates->info.shape;
  if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || shape[2] != 3) return;
  const std::vector<int64_t> three = {shape[0], 3};
  if (lengths->info.shape != three || angles->info.shape != three) return;
  StoredArray array;
  array.info = {.name = kPeriodicArray,
                .type = ElementType::f32,
                .shape = {shape[0], shape[1] + 3, 3},
                .dimensions = coordinates->info.dimensions,
                .attributes = coordinates->info.attributes};
  array.frames = std::make_shared<CellArrays>(file, *coordinates, *lengths, *angles);
  array.with_cells = true;
  arrays.push_back(std::move(array));
}

}  // namespace tutti::data
