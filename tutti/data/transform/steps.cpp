#include "tutti/data/transform/steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "tutti/base/error.h"
#include "tutti/base/spelling.h"
#include "tutti/data/format/molecules/selection.h"

namespace tutti::data {
namespace {

constexpr std::string_view kStepNames =
    "resized-crop, periodic, select, contacts, permute, crop, flip, symmetries, divide, multiply, "
    "add, clip, log1p, normalise, min-max";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Returns the place behind a quoted word that begins at `at`; `at` itself if none does.
size_t behind_quotes(std::string_view text, size_t at) {
  if (text[at] != '\'' || (at > 0 && text[at - 1] != ' ' && text[at - 1] != ',')) return at;
  for (size_t end = text.find('\'', at + 1); end != text.npos; end = text.find('\'', end + 2))
    if (!text.substr(end + 1).starts_with('\'')) return end + 1;
  return at;
}

/// Splits text; separators in quotes do not count.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0, at = 0; at <= text.size(); ++at) {
    if (at < text.size()) at = behind_quotes(text, at);
    if (at < text.size() && text[at] != separator) continue;
    if (const std::string_view part = trimmed(text.substr(begin, at - begin)); !part.empty())
      parts.push_back(part);
    begin = at + 1;
  }
  return parts;
}

/// Returns a word without its quotes.
std::string unquoted(std::string_view word) {
  if (word.size() < 2 || behind_quotes(word, 0) != word.size()) return std::string(word);
  std::string path;
  for (size_t at = 1; at + 1 < word.size(); ++at) {
    path += word[at];
    if (word[at] == '\'') ++at;
  }
  return path;
}

std::string in_quotes(const std::string& path) {
  if (path.find_first_of(" ,\t'") == path.npos) return path;
  std::string word = "'";
  for (const char c : path) word.append(c == '\'' ? 2 : 1, c);
  return word + "'";
}

/// The words of one step, and the whole text for messages.
struct Words {
  std::string_view text;
  std::vector<std::string_view> words;

  [[noreturn]] void refuse(std::string_view why) const {
    throw ConfigError(fmt::format("data.transforms: in \"{}\", the step '{}' {}", text,
                                  fmt::join(words, " "), why));
  }
  double number(size_t i) const {
    double value = 0;
    const std::string_view word = words[i];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
      refuse(fmt::format("has '{}' where a number is wanted", word));
    return value;
  }
  int64_t whole(size_t i, int64_t least, int64_t greatest) const {
    const double value = number(i);
    if (value != std::floor(value) || value < static_cast<double>(least) ||
        value > static_cast<double>(greatest))
      refuse(fmt::format("has '{}' where a whole number of {} to {} is wanted", words[i], least,
                         greatest));
    return static_cast<int64_t>(value);
  }
  std::vector<float> numbers(size_t begin, size_t end) const {
    std::vector<float> all;
    for (size_t i = begin; i < end; ++i) all.push_back(static_cast<float>(number(i)));
    return all;
  }
  size_t find(std::string_view word) const {
    return static_cast<size_t>(std::ranges::find(words, word) - words.begin());
  }
};

Axes axes_of(const Words& step) {
  Axes axes = 0;
  for (size_t i = 1; i < step.words.size(); ++i) {
    constexpr std::string_view kAxes = "xyz";
    const size_t at = step.words[i].size() == 1 ? kAxes.find(step.words[i][0]) : kAxes.npos;
    if (at == kAxes.npos)
      step.refuse(
          fmt::format("has '{}' where an axis is wanted: x is the last one, y the one "
                      "before, z the one before that",
                      step.words[i]));
    axes |= static_cast<Axes>(1U << at);
  }
  if (axes == 0) step.refuse("names no axis: x is the last one, y the one before, then z");
  return axes;
}

void read_crop(const Words& step, Placement& placement) {
  const size_t pad = step.find("pad");
  for (size_t i = 1; i < std::min(pad, step.words.size()); ++i)
    placement.extents.push_back(step.whole(i, 1, int64_t{1} << 31));
  if (std::ssize(placement.extents) > kMostAxes) step.refuse("has more than three extents");
  if (pad < step.words.size()) {
    if (pad + 2 != step.words.size()) step.refuse("wants one number after 'pad', the last one");
    placement.pad = step.whole(pad + 1, 0, 1 << 20);
  }
  placement.crops = true;
}

/// Reads "resized-crop 224 of 256 area 0.08 1 aspect 0.75 1.3333".
ResizedCrop read_resized_crop(const Words& step) {
  constexpr int64_t kLongest = 1 << 14;
  ResizedCrop crop;
  size_t at = 1;
  const auto more = [&] { return at < step.words.size(); };
  const auto is_name = [&](std::string_view word) {
    return word == "of" || word == "area" || word == "aspect";
  };
  if (!more() || is_name(step.words[at]))
    step.refuse("wants the height and width of what it makes, or one for both, as in 224");
  crop.height = crop.width = step.whole(at++, 1, kLongest);
  if (more() && !is_name(step.words[at])) crop.width = step.whole(at++, 1, kLongest);
  const int64_t larger = std::max(crop.height, crop.width);
  crop.shorter = (larger * 8 + 3) / 7;  // 256 for 224
  std::vector<std::string_view> seen;
  while (more()) {
    const std::string_view word = step.words[at++];
    if (!is_name(word)) step.refuse(fmt::format("knows 'of', 'area' and 'aspect', not '{}'", word));
    if (std::ranges::find(seen, word) != seen.end())
      step.refuse(fmt::format("has '{}' twice", word));
    seen.push_back(word);
    const size_t wanted = word == "of" ? 1 : 2;
    if (at + wanted > step.words.size())
      step.refuse(
          fmt::format("wants {} after '{}'", wanted == 1 ? "a number" : "two numbers", word));
    if (word == "of") {
      crop.shorter = step.whole(at, larger, kLongest);
    } else {
      const bool area = word == "area";
      float& least = area ? crop.least_area : crop.least_aspect;
      float& greatest = area ? crop.greatest_area : crop.greatest_aspect;
      least = static_cast<float>(step.number(at));
      greatest = static_cast<float>(step.number(at + 1));
      if (!(least > 0) || !(least <= greatest) || (area && greatest > 1))
        step.refuse(area
                        ? "wants two shares of the area, above 0 and up to 1, the smaller one first"
                        : "wants two ratios of width to height above 0, the smaller one first");
    }
    at += wanted;
  }
  return crop;
}

bool read_derivation(const Words& step, Derivation& derivation) {
  if (step.words[0] == "resized-crop") {
    if (!derivation.is_identity()) step.refuse("must be the first one, and stand there once");
    derivation.resized = read_resized_crop(step);
    return true;
  }
  const bool takes_points =
      step.words[0] == "select" || step.words[0] == "contacts" || step.words[0] == "periodic";
  if (derivation.resized && takes_points)
    step.refuse("takes coordinates, and a step before it makes an image");
  if (step.words[0] == "periodic") {
    if (!derivation.is_identity()) step.refuse("must be the first one, and stand there once");
    if (step.words.size() != 1) step.refuse("wants nothing behind it");
    derivation.periodic = true;
  } else if (step.words[0] == "select") {
    if (!derivation.selection.empty() || derivation.radius)
      step.refuse("must stand before contacts, and once");
    const size_t words = step.words.size();
    if (words < 4 || step.words[words - 2] != "of")
      step.refuse(
          "wants atoms and a topology, as in 'select CA of protein.pdb' or 'select CA+CB residues "
          "10-60 chain A of protein.pdb'; a path with blanks or commas stands in '...'");
    for (size_t i = 1; i + 2 < words; ++i)
      derivation.selection.append(i > 1 ? " " : "").append(step.words[i]);
    (void)parse_selection(derivation.selection);
    derivation.topology = unquoted(step.words[words - 1]);
  } else if (step.words[0] == "contacts") {
    if (derivation.radius) step.refuse("stands there twice");
    if (step.words.size() != 2 || !(step.number(1) > 0))
      step.refuse("wants one distance above 0, in the unit of the coordinates");
    derivation.radius = static_cast<float>(step.number(1));
  } else {
    return false;
  }
  return true;
}

bool read_placement(const Words& step, Placement& placement) {
  const std::string_view name = step.words[0];
  const auto once = [&](bool there) {
    if (there) step.refuse("stands there twice");
  };
  if (name == "permute") {
    once(!placement.permute.empty());
    for (size_t i = 1; i < step.words.size(); ++i)
      placement.permute.push_back(static_cast<int>(step.whole(i, 0, Shape::kMaxRank - 1)));
    std::vector<int> sorted = placement.permute, all(sorted.size());
    std::iota(all.begin(), all.end(), 0);
    std::ranges::sort(sorted);
    if (sorted.empty() || sorted != all) step.refuse("must name each axis once, from 0 up");
    if (placement.has_chance()) step.refuse("must be the first one");
  } else if (name == "crop") {
    once(placement.crops);
    read_crop(step, placement);
  } else if (name == "flip") {
    once(placement.flip != 0);
    placement.flip = axes_of(step);
  } else if (name == "symmetries") {
    once(placement.symmetries != 0);
    placement.symmetries = axes_of(step);
    if (placement.symmetries != 0b11 && placement.symmetries != 0b111)
      step.refuse("takes the axes x y or x y z");
  } else {
    return false;
  }
  return true;
}

/// Reads "normalise", or "normalise mean A B std C D".
void read_pair(const Words& step, std::string_view one, std::string_view other, ValueStep& value) {
  if (step.words.size() == 1) return;
  const size_t second = step.find(other);
  if (step.words[1] != one || second >= step.words.size())
    step.refuse(fmt::format("wants nothing or: {} A ... {} B ...", one, other));
  value.first = step.numbers(2, second);
  value.second = step.numbers(second + 1, step.words.size());
  if (value.first.empty() || value.first.size() != value.second.size())
    step.refuse(fmt::format("wants as many numbers after '{}' as after '{}'", other, one));
}

ValueStep read_value(const Words& step) {
  using Kind = ValueStep::Kind;
  struct Known {
    std::string_view name;
    Kind kind;
    size_t numbers;
  };
  constexpr std::array kKnown = {
      Known{"divide", Kind::divide, 1},  Known{"multiply", Kind::multiply, 1},
      Known{"add", Kind::add, 1},        Known{"clip", Kind::clip, 2},
      Known{"log1p", Kind::log1p, 0},    Known{"normalise", Kind::normalise, 0},
      Known{"min-max", Kind::min_max, 0}};
  const auto known = std::ranges::find(kKnown, step.words[0], &Known::name);
  if (known == kKnown.end()) {
    std::vector<std::string> names;
    for (const std::string_view name : split(kStepNames, ',')) names.emplace_back(name);
    step.refuse(fmt::format("is not known{}; known are {}",
                            did_you_mean(nearest_spelling(step.words[0], names)), kStepNames));
  }
  ValueStep value{.kind = known->kind, .first = {}, .second = {}};
  if (known->kind == Kind::normalise) {
    read_pair(step, "mean", "std", value);
    if (std::ranges::any_of(value.second, [](float s) { return !(s > 0); }))
      step.refuse("has a std that is not positive");
    return value;
  }
  if (known->kind == Kind::min_max) {
    read_pair(step, "min", "max", value);
    for (size_t i = 0; i < value.first.size(); ++i)
      if (!(value.first[i] < value.second[i])) step.refuse("has a max that is not above its min");
    return value;
  }
  if (step.words.size() != 1 + known->numbers)
    step.refuse(fmt::format("wants {} number(s)", known->numbers));
  if (known->numbers > 0) value.first = step.numbers(1, 2);
  if (known->numbers > 1) value.second = step.numbers(2, 3);
  if (known->kind == Kind::divide && value.first[0] == 0) step.refuse("divides by zero");
  if (known->kind == Kind::clip && !(value.first[0] <= value.second[0]))
    step.refuse("has bounds in the wrong order");
  return value;
}

}  // namespace

FieldSteps parse_steps(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = trimmed(text.substr(0, colon));
  if (colon == std::string_view::npos || name.empty())
    throw ConfigError(
        fmt::format("data.transforms: \"{}\" must be a field, a colon and steps, as in \"image: "
                    "divide 255\"; steps with commas between them are one text in quotes, also as "
                    "a flag: --set 'data.transforms=[\"image: flip x, divide 255\"]'",
                    text));
  FieldSteps steps{.field = std::string(name)};
  for (const std::string_view one : split(text.substr(colon + 1), ',')) {
    const Words step{text, split(one, ' ')};
    const bool first = steps.values.empty() && steps.placement.is_identity();
    if (Derivation unused; read_derivation(step, first ? steps.derivation : unused)) {
      if (!first)
        step.refuse(
            "makes another field: it must stand before the steps that move elements or "
            "change values");
      continue;
    }
    if (!steps.values.empty() || !read_placement(step, steps.placement)) {
      if (Placement unused; !steps.values.empty() && read_placement(step, unused))
        step.refuse("moves elements: it must stand before the steps that change values");
      steps.values.push_back(read_value(step));
    }
  }
  return steps;
}

std::string with_topology(std::string_view text,
                          const std::function<std::string(const std::string&)>& place) {
  for (const std::string_view step : split(text.substr(text.find(':') + 1), ',')) {
    const std::vector<std::string_view> words = split(step, ' ');
    if (words.size() < 4 || words[0] != "select" || words[words.size() - 2] != "of") continue;
    const auto at = static_cast<size_t>(words.back().data() - text.data());
    return std::string(text.substr(0, at)) + in_quotes(place(unquoted(words.back()))) +
           std::string(text.substr(at + words.back().size()));
  }
  return std::string(text);
}

Shape placed_shape(const Field& stored, const Placement& placement) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(fmt::format("data.transforms: the field '{}' ({}) {}", stored.name,
                                  stored.to_string(), why));
  };
  Shape shape = stored.shape;
  const int rank = shape.rank();
  if (!placement.permute.empty()) {
    if (std::ssize(placement.permute) != rank)
      refuse(fmt::format("has {} axes, permute names {}", rank, placement.permute.size()));
    for (int d = 0; d < rank; ++d)
      shape[d] = stored.shape[placement.permute[static_cast<size_t>(d)]];
  }
  if ((placement.flip | placement.symmetries) >> std::min(rank, kMostAxes) != 0)
    refuse("does not have the axes that flip or symmetries name");
  if (std::ssize(placement.extents) > rank) refuse("has fewer axes than crop has extents");
  if (placement.crops && placement.extents.empty() && rank < 2) refuse("has no x and y to crop");
  const int cropped = static_cast<int>(placement.extents.size());
  for (int i = 0; i < cropped; ++i) {
    int64_t& extent = shape[rank - cropped + i];
    const int64_t wanted = placement.extents[static_cast<size_t>(i)];
    if (wanted > extent + 2 * placement.pad)
      refuse(fmt::format("has {} elements along an axis (and {} of padding), crop asks for {}",
                         extent, 2 * placement.pad, wanted));
    extent = wanted;
  }
  if (placement.symmetries != 0)
    for (int a = 1; a < (placement.symmetries == 0b111 ? 3 : 2); ++a)
      if (shape[rank - 1 - a] != shape[rank - 1])
        refuse("must have equal sides for its symmetries");
  return shape;
}

}  // namespace tutti::data
