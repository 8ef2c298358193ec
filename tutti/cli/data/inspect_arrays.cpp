#include "tutti/cli/data/inspect_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/open_array.h"

namespace tutti::cli {
namespace {

constexpr int64_t kMostElements = int64_t{64} << 20;

/// Tells how stored values are converted to those that are shown; empty where they are the same.
std::string coding_text(const data::ArrayInfo& info, const data::ValueCoding& coding) {
  std::string text;
  if (coding.scaled()) text = fmt::format("; stored as {}", name_of(info.type));
  if (coding.scale != 1) text += fmt::format(", times scale_factor {:.6g}", coding.scale);
  if (coding.offset != 0) text += fmt::format(", plus add_offset {:.6g}", coding.offset);
  if (const auto names = data::passed_over(info); !names.empty())
    text += fmt::format("; passed over: {}", fmt::join(names, ", "));
  return text;
}

/// Returns the range of the whole array, or of as many rows of its first dimension as fit the
/// limit.
std::string range_of(const data::ArrayFile& file, size_t array) {
  const data::ArrayInfo& info = file.arrays()[array];
  data::Slab slab = data::Slab::all(info);
  const int64_t each =
      info.shape.empty() ? 1 : info.elements() / std::max<int64_t>(info.shape[0], 1);
  if (info.elements() > kMostElements) {
    if (each > kMostElements) return "too large to be looked through";
    slab = data::Slab::rows(info, 0, kMostElements / each);
  }
  const data::ValueCoding coding = data::value_coding(info);
  std::vector<float> values(static_cast<size_t>(slab.elements()));
  ValueRange range;
  if (data::is_plain(coding)) {
    file.read_f32(array, slab, values.data());
  } else {  // as fields have them
    std::vector<uint8_t> stored(values.size() * size_of(info.type));
    file.read(array, slab, stored.data());
    data::decode_values(coding, info.type, stored.data(), slab.elements(), NAN, values.data());
    range.missing = std::erase_if(values, [](float x) { return std::isnan(x); });
  }
  range.add(values);
  return range.to_string() + (slab.elements() < info.elements()
                                  ? fmt::format(" in the first {} rows", slab.count[0])
                                  : "");
}

/// Returns whether an array gives the positions of values, as NetCDF's coordinates and bounds do.
bool is_coordinate(const data::ArrayInfo& info) {
  return (info.dimensions.size() == 1 && info.dimensions[0] == info.name) ||
         info.name.ends_with("_bnds") || info.name.ends_with("_bounds") ||
         info.name.starts_with("bounds_") || info.name.starts_with("nav_l");
}

/// True for the dimension names of AMBER's convention of NetCDF and of our readers of trajectories.
bool is_trajectory(const data::ArrayInfo& info) {
  return info.dimensions == std::vector<std::string>{"frame", "atom", "spatial"};
}

}  // namespace

void ValueRange::add(std::span<const float> values) {
  for (const double x : values) {
    if (!std::isfinite(x)) {
      ++not_finite;
      continue;
    }
    low = std::min(low, x);
    high = std::max(high, x);
  }
}

std::string ValueRange::to_string() const {
  std::string text = low <= high ? fmt::format("{:.6g} to {:.6g}", low, high) : "no number";
  if (not_finite > 0) text += fmt::format(", {} not finite", not_finite);
  if (missing > 0) text += fmt::format(", {} missing", missing);
  return text;
}

std::string extents_text(std::span<const int64_t> shape) {
  return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string inspected_line(std::string_view name, std::string_view type, const std::string& shape,
                           const std::string& values) {
  return fmt::format("  {:<32} {:<5} {:<20} {}\n", name, type, shape, values);
}

Inspected inspect_arrays(const std::filesystem::path& path) {
  const data::ArrayFile file = data::open_array_file(path);
  Inspected found{fmt::format("{}: {} array(s)\n", path.string(), file.arrays().size()), {}};
  for (size_t i = 0; i < file.arrays().size(); ++i) {
    const data::ArrayInfo& info = file.arrays()[i];
    std::string values = info.problem.empty() ? range_of(file, i) : info.problem;
    if (const auto units = info.attributes.find("units");
        units != info.attributes.end() && !units->second.text.empty())
      values += ", " + units->second.text;
    if (info.problem.empty()) values += coding_text(info, data::value_coding(info));
    const bool with_cells = info.name.starts_with(data::kPeriodicArray);
    if (with_cells)
      values += "; atoms, then the unit cell's three vectors";
    else if (is_trajectory(info))
      values += fmt::format("; {} frames of {} atoms", info.shape[0], info.shape[1]);
    if (!info.link.empty() && info.problem.empty()) values += "; " + info.link;
    found.text += inspected_line(info.name, name_of(info.type), extents_text(info.shape), values);
    // An array that a link of the file leads to is listed under its own name, too.
    const bool again = !info.link.empty() && !info.link.starts_with("external");
    if (!info.problem.empty()) found.arrays.push_back({.name = info.name, .unreadable = true});
    if (info.problem.empty() && info.elements() > 0 && !is_coordinate(info) && !with_cells &&
        !again)
      found.arrays.push_back({.name = info.name,
                              .whole_numbers = is_integer(info.type),
                              .wide = is_integer(info.type) && size_of(info.type) >= 4,
                              .shape = info.shape,
                              .as = ""});
  }
  return found;
}

}  // namespace tutti::cli
