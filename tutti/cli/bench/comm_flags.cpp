#include "tutti/cli/bench/comm_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/cli/flags/suggest.h"

namespace tutti::cli {

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

std::vector<size_t> sizes_in(const SizeRange& range) {
  if (!(range.factor >= 1)) throw ConfigError("-f: sizes grow by a factor of at least 1");
  const size_t first = parse_bytes(range.min, "-b"), last = parse_bytes(range.max, "-e");
  if (first > last)
    throw ConfigError(fmt::format("-b {} is larger than -e {}", range.min, range.max));
  std::vector<size_t> sizes;
  if (range.factor == 1) {
    const size_t step = parse_bytes(range.step, "-i");
    for (size_t bytes = first; bytes <= last; bytes += step) sizes.push_back(bytes);
    return sizes;
  }
  for (auto bytes = static_cast<double>(first); bytes < static_cast<double>(last) + 1;
       bytes *= range.factor)
    if (sizes.empty() || static_cast<size_t>(bytes) != sizes.back())
      sizes.push_back(static_cast<size_t>(bytes));
  return sizes;
}

comm::Element element_of_flag(const std::string& name) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"float", "f32"},     {"float32", "f32"}, {"double", "f64"},  {"float64", "f64"},
      {"bfloat16", "bf16"}, {"half", "f16"},    {"float16", "f16"}, {"int8", "i8"},
      {"int32", "i32"},     {"int", "i32"},     {"int64", "i64"},   {"uint8", "u8"}};
  for (const auto& [other, ours] : kOthers)
    if (name == other) return comm::element_named(ours);
  return comm::element_named(name);
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
    const auto at = std::ranges::find(known, name);
    if (at == known.end())
      throw ConfigError(fmt::format("--collective: no collective is called '{}'{}", name,
                                    did_you_mean(name, known)));
    found.push_back(all[static_cast<size_t>(at - known.begin())]);
  }
  if (found.empty()) throw ConfigError("--collective: a name is missing");
  return found;
}

}  // namespace tutti::cli
