#include "tutti/data/arrays/statistics_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tutti/base/json.h"
#include "tutti/base/json_words.h"
#include "tutti/data/file/text_file.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostNumbers = 1 << 20, kMostText = 64 << 20;

using Numbers = std::map<std::string, std::vector<float>, std::less<>>;

/// Collects numbers and lists of numbers of a JSON object, under the names on their path joined by
/// '/'.
void flatten(const Json& json, const std::string& name, Numbers& numbers, const std::string& file) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, name.empty() ? key : name + "/" + key, numbers, file);
    return;
  }
  std::vector<float> values;
  if (json.is_number()) values.push_back(json.get<float>());
  if (json.is_array())
    for (const Json& one : json) {
      if (!one.is_number()) throw BadFile("{}: '{}' must be a list of numbers", file, name);
      values.push_back(one.get<float>());
    }
  if (!values.empty()) numbers[name] = std::move(values);
}

Numbers numbers_of_json(const fs::path& path) {
  const FileBytes bytes = FileBytes::open(path);
  if (bytes.size() > kMostText)
    throw BadFile("{}: expected statistics, found {} bytes", path.string(), bytes.size());
  if (const std::string why = why_no_text(bytes, "statistics as JSON"); !why.empty())
    throw BadFile(why);
  std::string text(static_cast<size_t>(bytes.size()), '\0');
  bytes.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  Numbers numbers;
  try {
    flatten(parse_json(text), "", numbers, path.string());
  } catch (const Json::exception& error) {
    const bool infinite = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
    throw BadFile("{}: expected JSON: {}; {}", path.string(), json_words(error),
                  infinite
                      ? "JSON has no NaN or Infinity, as Python writes them: take such numbers out"
                      : "correct data.statistics or the file");
  }
  return numbers;
}

Numbers numbers_of_arrays(const fs::path& path) {
  const ArrayFile file = open_array_file(path);
  Numbers numbers;
  for (size_t i = 0; i < file.arrays().size(); ++i) {
    const ArrayInfo& info = file.arrays()[i];
    if (!info.problem.empty() || info.elements() > kMostNumbers) continue;
    std::vector<float>& values = numbers[info.name];
    values.resize(static_cast<size_t>(info.elements()));
    file.read_f32(i, Slab::all(info), values.data());
  }
  return numbers;
}

/// The numbers under one prefix.
class Offer {
 public:
  Offer(const Numbers& numbers, std::string prefix, const std::string& file)
      : numbers_(numbers), prefix_(std::move(prefix)), file_(file) {}

  FieldStatistics read() const {
    FieldStatistics found{.mean = take({"mean"}),
                          .deviation = take({"std"}),
                          .least = take({"min", "minval"}),
                          .greatest = take({"max", "maxval"})};
    if (found.deviation.empty() && !found.mean.empty()) found.deviation = from_squares(found.mean);
    if (found.mean.size() != found.deviation.size()) found.mean.clear(), found.deviation.clear();
    require_sense(found);
    return found;
  }

 private:
  std::vector<float> take(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const auto found = numbers_.find(prefix_ + name); found != numbers_.end()) {
        if (!std::ranges::all_of(found->second, [](float x) { return std::isfinite(x); }))
          refuse(fmt::format("'{}{}' holds numbers that are not finite", prefix_, name));
        return found->second;
      }
    return {};
  }
  /// Returns nothing if squares in f32 leave too few digits for a difference, as in a channel of
  /// DeepCAM's published file.
  std::vector<float> from_squares(const std::vector<float>& mean) const {
    const std::vector<float> squares = take({"sqmean"});
    if (squares.size() != mean.size()) return {};
    std::vector<float> deviation;
    for (size_t i = 0; i < mean.size(); ++i) {
      const double m = mean[i], variance = squares[i] - m * m;
      if (!(variance > 1e-4 * m * m)) return {};
      deviation.push_back(static_cast<float>(std::sqrt(variance)));
    }
    return deviation;
  }
  void require_sense(const FieldStatistics& found) const {
    for (const float deviation : found.deviation)
      if (!(deviation >= 0)) refuse(fmt::format("a deviation under '{}' is negative", prefix_));
    if (found.least.size() != found.greatest.size())
      refuse(fmt::format("there are {} minima under '{}' and {} maxima", found.least.size(),
                         prefix_, found.greatest.size()));
    for (size_t i = 0; i < found.least.size(); ++i)
      if (!(found.least[i] <= found.greatest[i]))
        refuse(fmt::format("maximum {} under '{}' is below its minimum", i, prefix_));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadFile("{}: {}: correct data.statistics or the file", file_, why);
  }

  const Numbers& numbers_;
  std::string prefix_;
  const std::string& file_;
};

bool is_known(const FieldStatistics& found) { return !found.mean.empty() || !found.least.empty(); }

/// Uses the first prefix with any numbers, for a field with one array or a group of all.
FieldStatistics statistics_under(const Numbers& numbers, const std::string& field,
                                 std::string array, const std::string& file) {
  if (array.starts_with('/')) array.erase(0, 1);
  const size_t group = array.find_last_of('/');
  for (const std::string& prefix :
       {field + "/", array + "/",
        group == std::string::npos ? std::string() : array.substr(0, group + 1), std::string()})
    if (FieldStatistics found = Offer(numbers, prefix, file).read(); is_known(found)) return found;
  return {};
}

/// Returns one number for each stacked array; nothing if one of them has not exactly one.
std::vector<float> stacked(const std::vector<FieldStatistics>& arrays,
                           std::vector<float> FieldStatistics::*of) {
  std::vector<float> all;
  for (const FieldStatistics& one : arrays) {
    if ((one.*of).size() != 1) return {};
    all.push_back((one.*of)[0]);
  }
  return all;
}

FieldStatistics statistics_of(const Numbers& numbers, const FieldLine& line,
                              const std::string& file) {
  if (line.arrays.size() > 1) {
    if (FieldStatistics own = Offer(numbers, line.field + "/", file).read(); is_known(own))
      return own;
    std::vector<FieldStatistics> arrays;
    for (const std::string& array : line.arrays)
      arrays.push_back(
          Offer(numbers, (array.starts_with('/') ? array.substr(1) : array) + "/", file).read());
    if (std::ranges::any_of(arrays, is_known))
      return {.mean = stacked(arrays, &FieldStatistics::mean),
              .deviation = stacked(arrays, &FieldStatistics::deviation),
              .least = stacked(arrays, &FieldStatistics::least),
              .greatest = stacked(arrays, &FieldStatistics::greatest)};
  }
  return statistics_under(numbers, line.field, line.arrays.front(), file);
}

}  // namespace

std::vector<FieldStatistics> read_statistics(const fs::path& file,
                                             const std::vector<FieldLine>& lines) {
  const Numbers numbers =
      file.extension() == ".json" ? numbers_of_json(file) : numbers_of_arrays(file);
  std::vector<FieldStatistics> all;
  for (const FieldLine& line : lines)
    all.push_back(line.class_names.empty() ? statistics_of(numbers, line, file.string())
                                           : FieldStatistics());
  if (std::ranges::none_of(all, is_known)) {
    std::string names;
    for (const auto& [name, values] : numbers) names += (names.empty() ? "" : ", ") + name;
    throw BadFile(
        "{}: expected statistics named as '{}/mean' and '{}/std', or min and max, found {}: "
        "correct data.statistics",
        file.string(), lines.front().field, lines.front().field,
        names.empty() ? "none" : names.substr(0, 500));
  }
  return all;
}

std::string statistics_json(const std::vector<Field>& fields,
                            const std::vector<FieldStatistics>& statistics) {
  Json json = Json::object();
  for (size_t f = 0; f < fields.size(); ++f)
    if (is_known(statistics[f]))
      json[fields[f].name] = {{"mean", statistics[f].mean},
                              {"std", statistics[f].deviation},
                              {"min", statistics[f].least},
                              {"max", statistics[f].greatest}};
  return print_json(json, 2);
}

}  // namespace tutti::data
