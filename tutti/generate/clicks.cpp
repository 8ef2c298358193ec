#include "tutti/generate/clicks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

constexpr double kMeanLogit = -1.5, kWeight = 0.2, kVector = 0.45, kSlope = 0.15;
constexpr int64_t kFewestCategories = 4;

/// Returns a stream of random numbers for a category; these streams follow those of lines.
uint64_t click_stream(int column, int64_t category) {
  return uint64_t{1} << 62 | static_cast<uint64_t>(column) << 48 | static_cast<uint64_t>(category);
}

/// The parameters of a category.
struct ClickCategory {
  uint32_t name = 0;
  double weight = 0;
  std::array<double, kClickVector> vector{};
};

ClickCategory category_of(const ClickSpec& spec, int column, int64_t category) {
  Rng rng(spec.seed, Purpose::generate, click_stream(column, category));
  ClickCategory known{.name = rng.next_u32(),
                      .weight = kWeight * static_cast<double>(rng.normal())};
  for (double& x : known.vector) x = kVector * static_cast<double>(rng.normal());
  return known;
}

/// Approximate mean of log(1 + number), and its slope in the logit.
struct ClickNumber {
  double mean = 0, slope = 0;
};

ClickNumber click_number(const ClickSpec& spec, int column) {
  Rng rng(spec.seed, Purpose::generate, click_stream(kClickCategories + column, 0));
  const double mean = 1 + 3 * static_cast<double>(rng.uniform());
  return {.mean = mean, .slope = kSlope * static_cast<double>(rng.normal())};
}

}  // namespace

int64_t click_vocabulary(const ClickSpec& spec, int column) {
  const double least = std::log(static_cast<double>(kFewestCategories));
  const double most = std::log(static_cast<double>(spec.vocabulary));
  const double share = (column * 7 % kClickCategories) / (kClickCategories - 1.0);
  return std::llround(std::exp(least + (most - least) * share));
}

Click generate_click(const ClickSpec& spec, int64_t index) {
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  Click click{.logit = kMeanLogit};
  for (int i = 0; i < kClickNumbers; ++i) {
    const ClickNumber number = click_number(spec, i);
    const bool missing = rng.uniform() < 0.1f * static_cast<float>(i % 3);
    const double x = number.mean + static_cast<double>(rng.normal());
    const auto value = static_cast<int32_t>(std::max(0.0, std::exp(x) - 1));
    click.numbers[static_cast<size_t>(i)] = missing ? -1 : value;
    if (!missing)
      click.logit += number.slope * (std::log1p(static_cast<double>(value)) - number.mean);
  }
  std::array<ClickCategory, kClickCategories> known;
  for (int i = 0; i < kClickCategories; ++i) {
    const auto all = static_cast<double>(click_vocabulary(spec, i));
    const bool missing = rng.uniform() < 0.02f * static_cast<float>(i % 4);
    const double u = (rng.next_u32() + 0.5) * 0x1p-32;
    const double drawn = std::floor(std::exp(u * std::log(all + 1))) - 1;  // k: log(1 + 1/k)
    const auto category = static_cast<int64_t>(std::clamp(drawn, 0.0, all - 1));
    click.categories[static_cast<size_t>(i)] = missing ? -1 : category;
    if (!missing) known[static_cast<size_t>(i)] = category_of(spec, i, category);
    click.logit += known[static_cast<size_t>(i)].weight;
  }
  for (size_t i = 0; i + 1 < kClickCategories; i += 2)
    for (size_t k = 0; k < kClickVector; ++k)
      click.logit += known[i].vector[k] * known[i + 1].vector[k];
  click.clicked = static_cast<double>(rng.uniform()) < 1 / (1 + std::exp(-click.logit));
  return click;
}

std::string click_line(const ClickSpec& spec, const Click& click) {
  std::string line(click.clicked ? "1" : "0");
  for (const int32_t number : click.numbers) {
    line += '\t';
    if (number >= 0) fmt::format_to(std::back_inserter(line), "{}", number);
  }
  for (int i = 0; i < kClickCategories; ++i) {
    const int64_t category = click.categories[static_cast<size_t>(i)];
    line += '\t';
    if (category >= 0)
      fmt::format_to(std::back_inserter(line), "{:08x}", category_of(spec, i, category).name);
  }
  return line + '\n';
}

}  // namespace tutti::generate
