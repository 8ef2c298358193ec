#include "tutti/study/size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/number.h"

namespace tutti::study {
namespace {

constexpr int64_t kMost = 1 << 20;
constexpr size_t kMostShared = 2;  // dimensions of a sample, as parallel.spatial

int64_t read_count(std::string_view digits, std::string_view text) {
  int64_t count = 0;
  if (!read_number(digits, count) || count < 1 || count > kMost)
    throw ConfigError(
        fmt::format("--ranks: '{}' is not a number of ranks, such as 4, nor one with the ranks "
                    "that share each sample, such as 4/2x2",
                    text));
  return count;
}

Size parse_size(std::string_view text, const std::vector<int64_t>& otherwise) {
  const size_t slash = text.find('/');
  const auto ranks = static_cast<int>(read_count(text.substr(0, slash), text));
  if (slash == std::string_view::npos) return {ranks, otherwise};
  std::vector<int64_t> spatial;
  for (size_t at = slash; at != std::string_view::npos;) {
    const size_t end = std::min(text.find('x', at + 1), text.size());
    spatial.push_back(read_count(text.substr(at + 1, end - at - 1), text));
    at = end < text.size() ? end : std::string_view::npos;
  }
  if (spatial.size() > kMostShared)
    throw ConfigError(
        fmt::format("--ranks: '{}' shares a sample along {} dimensions, at most {} can be shared",
                    text, spatial.size(), kMostShared));
  return {ranks, spatial};
}

}  // namespace

Size::Size(int n, std::vector<int64_t> grid) : ranks(n), spatial(std::move(grid)) {
  if (parts() == 1) spatial.clear();
}

int64_t Size::parts() const {
  return std::accumulate(spatial.begin(), spatial.end(), int64_t{1}, std::multiplies<>());
}

std::string Size::grid() const { return fmt::format("{}", fmt::join(spatial, "x")); }

std::string Size::text() const {
  return spatial.empty() ? fmt::to_string(ranks) : fmt::format("{}/{}", ranks, grid());
}

std::string Size::words() const {
  const std::string all = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  return spatial.empty() ? all : fmt::format("{}, of which {} share each sample", all, grid());
}

std::vector<Size> parse_sizes(std::string_view text, const std::vector<int64_t>& otherwise) {
  std::vector<Size> sizes;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    sizes.push_back(parse_size(text.substr(at, end - at), otherwise));
    at = end + 1;
  }
  return sizes;
}

}  // namespace tutti::study
