#include "tutti/comm/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

// Measured on one node of two cores; between nodes by the algorithms' formulas. Fewest rounds for what is small, least bytes for what is large.
constexpr std::string_view kBuiltIn = R"(
allreduce  *  1  8192     recursive_doubling
allreduce 16  1  *        pairwise
allreduce  *  1  *        vector_halving
allreduce  *  *  16384    recursive_doubling
allreduce  *  *  *        two_level
allreduce  *  *  *        vector_halving
allgather  *  *  2048     recursive_doubling
allgather 64  *  *        pairwise
allgather  *  *  *        ring
reduce_scatter 64 * *     pairwise
reduce_scatter *  * *     ring
gather    64  *  *        pairwise
scatter   64  *  *        pairwise
barrier    *  *  *        recursive_doubling
)";

std::optional<Collective> collective_named(std::string_view name) {
  for (int kind = 0; kind < kCollectives; ++kind)
    if (name_of(static_cast<Collective>(kind)) == name) return static_cast<Collective>(kind);
  return std::nullopt;
}

std::optional<size_t> bound_of(const std::string& text) {
  if (text == "*") return 0;
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

bool within(size_t value, size_t bound) { return bound == 0 || value <= bound; }

}  // namespace

Selection::Selection() : Selection(parse(kBuiltIn, "built-in table of algorithms")) {}

Selection Selection::parse(std::string_view text, std::string_view source) {
  Selection selection{std::vector<Line>{}};
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.size(), line.find('#')));
    std::istringstream words(line);
    std::string kind, ranks, nodes, bytes, algorithm, rest;
    if (!(words >> kind)) continue;
    const auto fail = [&](const std::string& what) { throw ConfigError(fmt::format("{}:{}: {}", source, number, what)); };
    if (!(words >> ranks >> nodes >> bytes >> algorithm) || words >> rest) fail("expected: collective ranks nodes bytes algorithm");
    const auto collective = collective_named(kind);
    if (!collective) fail(fmt::format("no collective is called '{}'", kind));
    const auto r = bound_of(ranks), n = bound_of(nodes), b = bound_of(bytes);
    if (!r || !n || !b) fail("an upper bound is a positive number or *");
    algorithm_named(algorithm);
    selection.lines_.push_back({*collective, *r, *n, *b, algorithm});
  }
  return selection;
}

std::string Selection::to_string() const {
  const auto bound = [](size_t value) { return value == 0 ? std::string("*") : std::to_string(value); };
  std::string out;
  for (const Line& line : lines_)
    out += fmt::format("{:<14} {:>6} {:>6} {:>10}  {}\n", name_of(line.kind), bound(line.ranks), bound(line.nodes), bound(line.bytes), line.algorithm);
  return out;
}

std::string Selection::choose(const Task& task, size_t element_bytes, bool reproducible) const {
  const size_t nodes = task.nodes.size() < 2 ? 1 : task.nodes.size() - 1;
  const auto does = [&](const Algorithm& algorithm) { return refusal_of(algorithm, task).empty() && (!reproducible || algorithm.reproducible(task)); };
  for (const Line& line : lines_)
    if (line.kind == task.kind && within(static_cast<size_t>(task.ranks), line.ranks) && within(nodes, line.nodes) && within(task.count * element_bytes, line.bytes) &&
        does(algorithm_named(line.algorithm)))
      return line.algorithm;
  for (const Algorithm* algorithm : algorithms())
    if (does(*algorithm)) return std::string(algorithm->name);
  throw CommError(fmt::format("no {}algorithm does {} among {} ranks", reproducible ? "reproducible " : "", name_of(task.kind), task.ranks));
}

}  // namespace tutti::comm
