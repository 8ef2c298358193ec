#include "tutti/data/transform/values.h"

#include <algorithm>
#include <array>
#include <cmath>

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

template <class Change>
void change_all(std::span<float> x, Change change) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = change(x[i], i);
}

/// log(1 + x). Of counts, which are small whole numbers, it is looked up: the library's function
/// takes longer than the network that reads a volume of a million of them.
class LogOnePlus {
 public:
  float operator()(float x) const {
    if (x >= 0 && x < kCount) {
      const auto whole = static_cast<int32_t>(x);
      if (static_cast<float>(whole) == x)
        return whole == 0 ? x : of_whole_[static_cast<size_t>(whole)];  // of -0 it is -0
    }
    return std::log1p(x);
  }
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

}  // namespace

ValueFunction::ValueFunction(const Field& stored, int64_t channels, std::vector<ValueStep> steps)
    : steps_(std::move(steps)) {
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
  for (const ValueStep& step : steps_) {
    const Numbers a = numbers_of(step.first, channel, along),
                  b = numbers_of(step.second, channel, along);
    switch (step.kind) {
      case Kind::divide: change_all(x, [&](float v, size_t i) { return v / a[i]; }); break;
      case Kind::multiply: change_all(x, [&](float v, size_t i) { return v * a[i]; }); break;
      case Kind::add: change_all(x, [&](float v, size_t i) { return v + a[i]; }); break;
      case Kind::clip:
        change_all(x, [&](float v, size_t i) { return std::clamp(v, a[i], b[i]); });
        break;
      case Kind::log1p:
        change_all(x, [&log = LogOnePlus::instance()](float v, size_t) { return log(v); });
        break;
      case Kind::normalise:
        change_all(x, [&](float v, size_t i) { return (v - a[i]) / b[i]; });
        break;
      case Kind::min_max:
        change_all(x, [&](float v, size_t i) { return (v - a[i]) / (b[i] - a[i]); });
        break;
    }
  }
}

}  // namespace tutti::data
