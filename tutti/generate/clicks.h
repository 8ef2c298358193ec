#pragma once
// Generates a click log from a seed, in Criteo's format. Categories are drawn by Zipf's law,
// numbers are log-normal counts, and the logit of a click's probability is
//
//   b + sum of the categories' weights + sum over pairs of columns of <u, v> + sum of a x
//
// with a weight and a vector of kClickVector numbers for each category, and x = log(1 + number)
// minus its mean. So a model needs tables and products of their rows. Missing values add nothing.
// Columns are independent of each other, unlike in real logs, and nothing changes with time.

#include <array>
#include <cstdint>
#include <string>

namespace tutti::generate {

inline constexpr int kClickNumbers = 13, kClickCategories = 26, kClickVector = 4;
/// Test lines start at this index.
inline constexpr int64_t kFirstTestClick = 1'000'000'000'000;

struct ClickSpec {
  uint64_t seed = 1;
  int64_t vocabulary = 10'000;  ///< categories of the largest column; the smallest has 4
};

struct Click {
  std::array<int32_t, kClickNumbers> numbers{};        ///< -1: missing
  std::array<int64_t, kClickCategories> categories{};  ///< from 0, the most frequent; -1: missing
  double logit = 0;                                    ///< logit of the click's probability
  bool clicked = false;
};

/// Returns the number of categories in the column.
int64_t click_vocabulary(const ClickSpec& spec, int column);
/// Generates a line: a pure function of both arguments.
Click generate_click(const ClickSpec& spec, int64_t index);
/// Returns the line as in the file, with its end.
std::string click_line(const ClickSpec& spec, const Click& click);

}  // namespace tutti::generate
