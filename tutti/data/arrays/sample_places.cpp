#include "tutti/data/arrays/sample_places.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tutti::data {
namespace {

const ArrayInfo& info_of(const ArrayFile& file, const FieldLine& line) {
  return file.arrays()[file.find(line.arrays.front())];
}

bool named_time(const ArrayInfo& info) {
  if (info.dimensions.empty()) return false;
  std::string name = info.dimensions[0].substr(info.dimensions[0].find_last_of('/') + 1);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return name == "time" || name == "times" || name == "sample" || name == "record" ||
         name == "frame" || name.starts_with("time_");
}

/// Tells from a line's 'as' whether the first axis counts samples (true) or not; returns nothing if
/// it fits both or neither, or has an open extent.
std::optional<bool> said_by_extents(const FieldLine& line, const ArrayInfo& info) {
  if (!line.shape || info.shape.empty() || info.shape[0] < 2 ||
      std::ranges::find(*line.shape, FieldLine::kAnyExtent) != line.shape->end())
    return {};
  int64_t wanted = 1;
  for (const int64_t extent : *line.shape) wanted *= extent;
  const int64_t whole = info.elements() * std::ssize(line.arrays);
  if (wanted == whole) return false;
  return wanted == whole / info.shape[0] ? std::optional(true) : std::nullopt;
}

/// Says whether fields agree in their first axis and in no other: 60x24x24 and 60x3 do, a map and
/// its mask do not.
bool agree_in_first_axis_alone(const std::vector<FieldLine>& lines, const ArrayFile& file) {
  std::set<int64_t> second;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(file, line);
    if (info.shape[0] < 2) return false;
    second.insert(info.shape.size() > 1 ? info.shape[1] : 0);
  }
  return second.size() > 1;
}

/// Decides by the headers if no line says where its samples lie.
bool first_axis_counts(const std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                       int64_t files) {
  for (const FieldLine& line : lines)
    if (const auto said = said_by_extents(line, info_of(some.front(), line))) return *said;
  std::set<int64_t> of_fields, of_files;
  bool named = false, a_number_each = false;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(some.front(), line);
    if (info.shape.empty()) return false;
    of_fields.insert(info.shape[0]);
    named |= named_time(info);
    a_number_each |= info.shape.size() == 1 && lines.size() > 1;
  }
  if (of_fields.size() > 1) return false;
  for (const ArrayFile& file : some)
    if (const ArrayInfo& info = info_of(file, lines.front()); !info.shape.empty())
      of_files.insert(info.shape[0]);
  return files == 1 || named || a_number_each || of_files.size() > 1 ||
         agree_in_first_axis_alone(lines, some.front());
}

/// Returns ", since first axes differ: x has 64, y 60"; empty where they are equal.
std::string unlike_axes(const std::vector<FieldLine>& lines, const ArrayFile& file) {
  std::set<int64_t> extents;
  std::string text;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(file, line);
    const int64_t first = info.shape.empty() ? 1 : info.shape[0];
    extents.insert(first);
    text += fmt::format("{}{} has {}", text.empty() ? "" : ", ", line.field, first);
  }
  return extents.size() > 1 ? ", since first axes differ: " + text : "";
}

/// Settles lines without a place by the lines that have one.
void follow_others(std::vector<FieldLine>& lines, const ArrayFile& first) {
  const auto counted = std::ranges::find(lines, FieldLine::Place::axis, &FieldLine::place);
  int64_t count = -1;
  if (counted != lines.end()) {
    const ArrayInfo& info = info_of(first, *counted);
    if (counted->axis < std::ssize(info.shape))
      count = info.shape[static_cast<size_t>(counted->axis)];
  }
  for (FieldLine& line : lines) {
    if (line.place != FieldLine::Place::unsaid) continue;
    const ArrayInfo& info = info_of(first, line);
    line.place = count >= 0 && !info.shape.empty() && info.shape[0] == count
                     ? FieldLine::Place::axis
                     : FieldLine::Place::whole;
  }
}

}  // namespace

std::string settle_places(std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                          int64_t files) {
  const auto unsaid = [](const FieldLine& line) { return line.place == FieldLine::Place::unsaid; };
  if (std::ranges::any_of(lines, unsaid)) {
    if (std::ranges::all_of(lines, unsaid)) {
      const bool counts = first_axis_counts(lines, some, files);
      for (FieldLine& line : lines)
        line.place = counts ? FieldLine::Place::axis : FieldLine::Place::whole;
      return counts
                 ? "the first axis counts the samples ('whole' in the lines of data.fields: each "
                   "file is one)"
                 : fmt::format(
                       "each file is one sample{} ('axis 0' in the lines of data.fields: the "
                       "first axis counts them)",
                       some.empty() ? "" : unlike_axes(lines, some.front()));
    }
    follow_others(lines, some.front());
  }
  if (one_sample_a_file(lines)) return "each file is one sample";
  std::string text;
  for (const FieldLine& line : lines)
    if (line.place != FieldLine::Place::whole)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", line.field,
                          line.place == FieldLine::Place::axis
                              ? fmt::format("counted along axis {}", line.axis)
                              : "cut into blocks");
  for (const FieldLine& line : lines)
    if (line.place == FieldLine::Place::whole)
      text += fmt::format(", {} the same for a whole file", line.field);
  return text;
}

bool one_sample_a_file(const std::vector<FieldLine>& lines) {
  return std::ranges::all_of(
      lines, [](const FieldLine& line) { return line.place == FieldLine::Place::whole; });
}

}  // namespace tutti::data
