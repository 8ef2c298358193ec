#pragma once
// Size: how many ranks a run of a study has, and how they share samples.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::study {

struct Size {
  Size(int n = 1, std::vector<int64_t> grid = {});  // NOLINT: a number of ranks is a size
  int ranks = 1;
  std::vector<int64_t> spatial = {};  ///< ranks that share each sample, along its dimensions;
                                      ///< empty: a rank has whole samples
  /// Compares by ranks; of equal ones, those with whole samples come first.
  auto operator<=>(const Size&) const = default;

  int64_t parts() const;
  int64_t groups() const { return ranks / parts(); }  ///< groups of ranks that share samples
  std::string grid() const;                           ///< "2x2"; empty: whole samples
  std::string text() const;                           ///< "4", "4/2x2": as parse_size reads it
  std::string words() const;  ///< "1 rank", "4 ranks, of which 2x2 share each sample"
};

/// Parses "1,4,4/2x2". A number alone shares samples as `otherwise` says. Throws ConfigError naming
/// --ranks.
std::vector<Size> parse_sizes(std::string_view text, const std::vector<int64_t>& otherwise);

}  // namespace tutti::study
