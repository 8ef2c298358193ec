#include "tutti/data/dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/spelling.h"

namespace tutti::data {

std::string Field::to_string() const {
  if (coded) return "coded image " + name;
  std::string text(name_of(element));
  text.append(" ").append(name);
  for (int d = 0; d < shape.rank(); ++d)
    text.append(d == 0 ? " " : "x").append(std::to_string(shape[d]));
  return text;
}

Sample::Sample(std::span<const Field> fields) {
  constexpr size_t kLine = 64, kLarge = size_t{64} << 10;
  size_t bytes = 0;
  for (const Field& field : fields) {
    const size_t alignment = field.bytes() >= kLarge ? sizeof(Page) : kLine;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    offsets_.push_back(bytes);
    bytes += field.bytes();
  }
  memory_.resize((bytes + sizeof(Page) - 1) / sizeof(Page));
  seen_.resize(fields.size());
  keepers_.resize(fields.size());
}

SampleOrigins Dataset::origins() const {
  SampleOrigins all;
  all.number.resize(static_cast<size_t>(size()));
  std::iota(all.number.begin(), all.number.end(), int64_t{0});
  const std::vector<SamplesOfFile> known = files();
  const bool alone = std::ranges::all_of(known, [](const auto& of) { return of.samples == 1; });
  for (const SamplesOfFile& of : known) {
    all.file.insert(all.file.end(), static_cast<size_t>(of.samples),
                    static_cast<int32_t>(all.files.size()));
    all.files.push_back(of.file);
    for (int64_t i = 0; !alone && i < of.samples; ++i) all.row.push_back(i);
  }
  if (all.file.size() != all.number.size()) all.files.clear(), all.file.clear(), all.row.clear();
  return all;
}

size_t field_index(const Dataset& dataset, std::string_view name) {
  const std::vector<Field>& fields = dataset.fields();
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found != fields.end()) return static_cast<size_t>(found - fields.begin());
  std::vector<std::string> names, texts;
  for (const Field& field : fields) {
    names.push_back(field.name);
    texts.push_back(field.to_string());
  }
  throw ConfigError(fmt::format("the data set has no field '{}'{}; its fields are: {}", name,
                                did_you_mean(nearest_spelling(name, names)),
                                fmt::join(texts, ", ")));
}

const Field& field_named(const Dataset& dataset, std::string_view name) {
  return dataset.fields()[field_index(dataset, name)];
}

}  // namespace tutti::data
