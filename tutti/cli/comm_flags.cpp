#include "tutti/cli/comm_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/cli/suggest.h"

namespace tutti {

size_t parse_bytes(const std::string& text, const std::string& flag) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const std::string unit(end, last);
  const double scale = unit.empty() || unit == "B"    ? 1
                       : unit == "K" || unit == "KiB" ? 1024
                       : unit == "M" || unit == "MiB" ? 1 << 20
                       : unit == "G" || unit == "GiB" ? 1 << 30
                                                      : 0;
  if (error != std::errc() || scale == 0 || !(value * scale >= 1 && value * scale < 1e18))
    throw ConfigError(
        fmt::format("{}: expected bytes such as 64K, 1.5M or 2G, got '{}'", flag, text));
  return static_cast<size_t>(value * scale);
}

int parse_checks(const std::string& text) {
  if (text.empty()) return 1;
  int count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count);
  if (error != std::errc() || end != last || count < 0)
    throw ConfigError(fmt::format("-c: expected a number of results to check, got '{}'", text));
  return count;
}

std::vector<size_t> sizes_between(const std::string& min, const std::string& max, double factor) {
  if (!(factor > 1)) throw ConfigError("-f: sizes grow by a factor above 1");
  const size_t first = parse_bytes(min, "-b"), last = parse_bytes(max, "-e");
  if (first > last) throw ConfigError(fmt::format("-b {} is larger than -e {}", min, max));
  std::vector<size_t> sizes;
  for (auto bytes = static_cast<double>(first); bytes < static_cast<double>(last) + 1;
       bytes *= factor)
    if (sizes.empty() || static_cast<size_t>(bytes) != sizes.back())
      sizes.push_back(static_cast<size_t>(bytes));
  return sizes;
}

std::vector<comm::Collective> collectives_named(const std::string& names) {
  std::vector<std::string> known;
  std::vector<comm::Collective> all, found;
  for (int kind = 0; kind < comm::kCollectives; ++kind) {
    all.push_back(static_cast<comm::Collective>(kind));
    known.emplace_back(comm::name_of(all.back()));
  }
  if (names == "all") return all;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end())
      throw ConfigError(fmt::format("--collective: no collective is called '{}'{}", name,
                                    did_you_mean(name, known)));
    found.push_back(all[static_cast<size_t>(at - known.begin())]);
  }
  if (found.empty()) throw ConfigError("--collective: a name is missing");
  return found;
}

}  // namespace tutti
