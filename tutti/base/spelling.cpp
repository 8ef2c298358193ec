#include "tutti/base/spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tutti {

int edit_distance(std::string_view a, std::string_view b) {
  // d(i, j): distance of the first i letters of a to the first j of b; three rows are enough.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string nearest_spelling(std::string_view word, const std::vector<std::string>& candidates) {
  const auto tail = [](std::string_view text) {
    return text.substr(text.rfind('.') + 1);
  };  // npos + 1 == 0
  const bool dotted = word.find('.') != std::string_view::npos;
  std::string best;
  int least = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (!dotted)
      distance = std::min(distance, edit_distance(word, tail(candidate)));
    else if (tail(word) == tail(candidate))
      distance = std::min(distance, 2);  // the right key under a wrong section
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view found) {
  return found.empty() ? "" : fmt::format(", did you mean '{}'?", found);
}

std::string must_be_one_of(const std::vector<std::string>& choices, std::string_view word) {
  constexpr size_t kMany = 4;
  return fmt::format(
      "must be one of {}, is \"{}\"{}", fmt::join(choices, ", "), word,
      choices.size() > kMany ? did_you_mean(nearest_spelling(word, choices)) : std::string());
}

}  // namespace tutti
