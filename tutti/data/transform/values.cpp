#include "tutti/data/transform/values.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/ranges.h>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

using Kind = ValueStep::Kind;

/// A step's numbers, by position in the row.
struct Numbers {
  const float* values;
  int64_t stride;  // 0: the same for all
  float operator[](size_t i) const { return values[static_cast<int64_t>(i) * stride]; }
};

Numbers numbers_of(const std::vector<float>& values, int64_t channel, bool along) {
  if (values.size() <= 1) return {values.data(), 0};
  return {values.data() + channel, along ? 1 : 0};
}

template <class T, class Change>
void change_all(std::span<T> x, Change change) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = change(x[i], i);
}

/// Computes log(1 + x). Counts are small whole numbers, which are looked up: the library's function
/// takes longer than the network for a volume of a million of them.
class LogOnePlus {
 public:
  float operator()(float x) const {
    if (x >= 0 && x < kCount) {
      const auto whole = static_cast<int32_t>(x);
      if (static_cast<float>(whole) == x)
        return whole == 0 ? x : of_whole_[static_cast<size_t>(whole)];  // -0 stays -0
    }
    return std::log1p(x);
  }
  double operator()(double x) const { return std::log1p(x); }
  static const LogOnePlus& instance() {
    static const LogOnePlus it;
    return it;
  }

 private:
  static constexpr int32_t kCount = 4096;
  LogOnePlus() {
    for (int32_t i = 0; i < kCount; ++i)
      of_whole_[static_cast<size_t>(i)] = std::log1p(static_cast<float>(i));
  }
  std::array<float, kCount> of_whole_;
};

/// Returns the x of a step's result y, with the step's numbers for a channel.
double step_back(Kind kind, double y, double a, double b) {
  switch (kind) {
    case Kind::divide: return y * a;
    case Kind::multiply: return y / a;
    case Kind::add: return y - a;
    case Kind::clip: return y;
    case Kind::log1p: return std::expm1(y);
    case Kind::normalise: return y * b + a;
    case Kind::min_max: return y * (b - a) + a;
  }
  return y;
}

std::string step_text(const ValueStep& step) {
  const auto pair = [&](std::string_view name, std::string_view one, std::string_view other) {
    return step.first.size() > 4
               ? std::string(name)
               : fmt::format("{} {} {} {} {}", name, one, fmt::join(step.first, " "), other,
                             fmt::join(step.second, " "));
  };
  switch (step.kind) {
    case Kind::divide: return fmt::format("divide {}", step.first[0]);
    case Kind::multiply: return fmt::format("multiply {}", step.first[0]);
    case Kind::add: return fmt::format("add {}", step.first[0]);
    case Kind::clip: return fmt::format("clip {} {}", step.first[0], step.second[0]);
    case Kind::log1p: return "log1p";
    case Kind::normalise: return pair("normalise", "mean", "std");
    case Kind::min_max: return pair("min-max", "min", "max");
  }
  return "";
}

}  // namespace

ValueFunction::ValueFunction(const Field& stored, int64_t channels, std::vector<ValueStep> steps)
    : steps_(std::move(steps)), channels_(channels) {
  const auto refuse = [&](std::string_view step, const std::string& why) {
    throw ConfigError(
        fmt::format("data.transforms: '{}' of the field '{}' {}", step, stored.name, why));
  };
  bool divided_by_255 = false;
  for (ValueStep& step : steps_) {
    divided_by_255 = divided_by_255 || (step.kind == Kind::divide && step.first[0] == 255);
    const bool normalises = step.kind == Kind::normalise;
    if (!normalises && step.kind != Kind::min_max) continue;
    const std::string_view name = normalises ? "normalise" : "min-max";
    const FieldStatistics& own = stored.statistics;
    if (step.first.empty()) {
      if (stored.element == ElementType::u8 && !divided_by_255)
        refuse(name,
               "without numbers must stand behind 'divide 255': the data set's own are those "
               "of values from 0 to 1");
      step.first = normalises ? own.mean : own.least;
      step.second = normalises ? own.deviation : own.greatest;
      if (step.first.empty())
        refuse(name, normalises ? "needs numbers, 'normalise mean A ... std B ...': the data set "
                                  "does not say its own"
                                : "needs numbers, 'min-max min A ... max B ...': the data set does "
                                  "not say its own");
    }
    if (step.first.size() != step.second.size() ||
        (step.first.size() != 1 && std::ssize(step.first) != channels))
      refuse(name, fmt::format("has numbers for {} channels, the field has {}: give one, or one "
                               "for each",
                               step.first.size(), channels));
    for (size_t i = 0; i < step.first.size(); ++i)
      if (normalises ? !(step.second[i] > 0) : !(step.first[i] < step.second[i]))
        refuse(name, fmt::format("would divide by zero: channel {} is {} everywhere; leave it out, "
                                 "or give numbers",
                                 i, step.first[i]));
    by_channel_ = by_channel_ || step.first.size() > 1;
  }
}

void ValueFunction::apply(std::span<float> x, int64_t channel, bool along) const {
  apply_to(x, channel, along);
}
void ValueFunction::apply(std::span<double> x, int64_t channel, bool along) const {
  apply_to(x, channel, along);
}

template <class T>
void ValueFunction::apply_to(std::span<T> x, int64_t channel, bool along) const {
  for (const ValueStep& step : steps_) {
    const Numbers a = numbers_of(step.first, channel, along),
                  b = numbers_of(step.second, channel, along);
    switch (step.kind) {
      case Kind::divide: change_all(x, [&](T v, size_t i) { return v / a[i]; }); break;
      case Kind::multiply: change_all(x, [&](T v, size_t i) { return v * a[i]; }); break;
      case Kind::add: change_all(x, [&](T v, size_t i) { return v + a[i]; }); break;
      case Kind::clip:
        change_all(x, [&](T v, size_t i) { return std::clamp<T>(v, a[i], b[i]); });
        break;
      case Kind::log1p:
        change_all(x, [&log = LogOnePlus::instance()](T v, size_t) { return log(v); });
        break;
      case Kind::normalise: change_all(x, [&](T v, size_t i) { return (v - a[i]) / b[i]; }); break;
      case Kind::min_max:
        change_all(x, [&](T v, size_t i) { return (v - a[i]) / (b[i] - a[i]); });
        break;
    }
  }
}

bool ValueFunction::forgets() const {
  return std::ranges::any_of(
      steps_, [](const ValueStep& s) { return s.kind == Kind::multiply && s.first[0] == 0; });
}

bool ValueFunction::has_inverse() const {
  return !forgets() &&
         std::ranges::any_of(steps_, [](const ValueStep& s) { return s.kind != Kind::clip; });
}

double ValueFunction::way_back(double y, size_t channel) const {
  const auto number = [&](const std::vector<float>& values) -> double {
    return values.empty() ? 0 : values[values.size() > 1 ? channel : 0];
  };
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
    y = step_back(step->kind, y, number(step->first), number(step->second));
  return y;
}

void ValueFunction::invert(std::span<float> sample, Origin origin) const {
  if (!has_inverse()) return;
  const size_t channels = by_channel_ ? static_cast<size_t>(channels_) : 1,
               each = sample.size() / channels;
  CHECK(each * channels == sample.size(), "{} numbers of {} channels", sample.size(), channels);
  for (size_t c = 0; c < channels; ++c) {
    const double zero = origin == Origin::learned_zero ? way_back(0, c) : 0;
    for (float& x : sample.subspan(c * each, each)) x = static_cast<float>(way_back(x, c) - zero);
  }
}

std::string ValueFunction::undone() const {
  std::string text;
  for (const ValueStep& step : steps_)
    if (has_inverse() && step.kind != Kind::clip)
      text += (text.empty() ? "" : ", ") + step_text(step);
  return text;
}

std::string ValueFunction::kept() const {
  std::string text;
  for (const ValueStep& step : steps_)
    if (!has_inverse() || step.kind == Kind::clip)
      text += (text.empty() ? "" : ", ") + step_text(step);
  return text;
}

}  // namespace tutti::data
