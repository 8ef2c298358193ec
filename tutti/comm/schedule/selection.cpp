#include "tutti/comm/schedule/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/number.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

// Measured on one node of two cores; between nodes by the algorithms' formulas. Small vectors take
// the fewest rounds, large ones the fewest bytes.
constexpr std::string_view kBuiltIn = R"(
allreduce       *  node   8192   *  recursive_doubling
allreduce      16  node   *      *  pairwise
allreduce       *  node   *      *  recursive_halving
allreduce       *  *      16384  *  recursive_doubling
allreduce       *  nodes  *      *  two_level
allreduce       *  *      *      *  recursive_halving
allgather       *  *      2048   *  recursive_doubling
allgather       *  nodes  *      *  two_level
allgather      64  *      *      *  pairwise
allgather       *  *      *      *  recursive_doubling
reduce_scatter  *  nodes  *      *  two_level
reduce_scatter 64  *      *      *  pairwise
reduce_scatter  *  *      *      *  recursive_halving
all_to_all      8  nodes  32768    *  pairwise
all_to_all     64  nodes  32768    *  bruck
all_to_all     64  nodes  *        *  two_level
all_to_all    512  nodes  262144   *  bruck
all_to_all    512  nodes  *        *  two_level
all_to_all      *  nodes  2097152  *  bruck
all_to_all      *  nodes  *        *  two_level
gather         64  *      *      *  pairwise
gather          *  *      *      *  binomial
scatter        64  *      *      *  pairwise
scatter         *  *      *      *  binomial
barrier         *  *      *      *  recursive_doubling
)";

std::optional<Collective> collective_named(std::string_view name) {
  for (int kind = 0; kind < kCollectives; ++kind)
    if (name_of(static_cast<Collective>(kind)) == name) return static_cast<Collective>(kind);
  return std::nullopt;
}

std::optional<size_t> bound_of(const std::string& text) {
  if (text == "*") return 0;
  size_t value = 0;
  if (!read_number(text, value) || value == 0) return std::nullopt;
  return value;
}

// Reads `yes`, `no`, or either (*), which leaves `choice` empty. Returns false for any other word.
bool read_choice(std::string_view word, std::string_view yes, std::string_view no,
                 std::optional<bool>& choice) {
  if (word == yes || word == no) choice = word == yes;
  return choice.has_value() || word == "*";
}

// Returns why the algorithm of a line does no task that the line matches; empty when it may.
std::string no_use(const Algorithm& algorithm, Collective kind, size_t most_ranks,
                   std::optional<bool> ordered) {
  constexpr size_t kEnough = 4, kCount = 64;  // ranks, on two nodes; elements
  const size_t most = most_ranks == 0 ? kEnough : std::min(most_ranks, kEnough);
  bool keeps_order = false;
  for (size_t ranks = std::min<size_t>(most, 3); ranks <= most; ++ranks) {
    Task task = balanced_task(kind, 0, static_cast<int>(ranks), kCount);
    if (kind == Collective::all_to_all) task.sends = task.receives = task.parts;
    task.equal_blocks = kind == Collective::all_to_all;
    task.ordered = ordered.value_or(false);
    for (size_t p = 0; p < ranks; ++p) task.node_of.push_back(2 * p < ranks ? 0 : 1);
    const std::string never = does_not_do(algorithm.name, task);
    if (refusal_of(algorithm, task) == never) return never;
    keeps_order |= algorithm.reproducible(task);
  }
  return !ordered.value_or(false) || keeps_order
             ? ""
             : fmt::format("{} does not add in the order of the tree, so it is never reproducible",
                           algorithm.name);
}

bool within_bound(size_t value, size_t bound) { return bound == 0 || value <= bound; }
bool agrees(bool value, std::optional<bool> wanted) { return !wanted || *wanted == value; }

}  // namespace

Selection::Selection() : Selection(parse(kBuiltIn, "built-in table of algorithms")) {}

Selection Selection::parse(std::string_view text, std::string_view source) {
  std::vector<Line> parsed;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.size(), line.find('#')));
    std::istringstream words(line);
    std::string kind, ranks, topology, bytes, reproducible, algorithm, rest;
    if (!(words >> kind)) continue;
    const auto fail = [&](const std::string& what) {
      throw ConfigError(fmt::format("{}:{}: {}", source, number, what));
    };
    if (!(words >> ranks >> topology >> bytes >> reproducible >> algorithm) || words >> rest)
      fail("expected: collective ranks topology bytes reproducible algorithm");
    const auto collective = collective_named(kind);
    if (!collective) fail(fmt::format("no collective is called '{}'", kind));
    const auto r = bound_of(ranks), b = bound_of(bytes);
    if (!r || !b)
      fail(fmt::format("'{}' is no upper bound: a positive number or *", r ? bytes : ranks));
    Line found{.kind = *collective,
               .ranks = *r,
               .one_node = {},
               .bytes = *b,
               .reproducible = {},
               .algorithm = algorithm};
    if (!read_choice(topology, "node", "nodes", found.one_node))
      fail(fmt::format("'{}' is no topology: node, nodes or *", topology));
    if (!read_choice(reproducible, "yes", "no", found.reproducible))
      fail(fmt::format("reproducible is yes, no or *, not '{}'", reproducible));
    const Algorithm* named = nullptr;
    try {
      named = &algorithm_named(algorithm);
    } catch (const ConfigError& error) {
      fail(error.what());
    }
    if (const std::string why = no_use(*named, *collective, *r, found.reproducible); !why.empty())
      fail(why);
    parsed.push_back(std::move(found));
  }
  return Selection(std::move(parsed));
}

std::string Selection::to_string() const {
  const auto bound = [](size_t value) {
    return value == 0 ? std::string("*") : std::to_string(value);
  };
  const auto choice = [](std::optional<bool> value, const char* yes, const char* no) {
    return !value ? "*" : *value ? yes : no;
  };
  std::string out;
  for (const Line& line : lines_)
    out += fmt::format("{:<14} {:>6}  {:<8} {:>10}  {:<12}  {}\n", name_of(line.kind),
                       bound(line.ranks), choice(line.one_node, "node", "nodes"), bound(line.bytes),
                       choice(line.reproducible, "yes", "no"), line.algorithm);
  return out;
}

Selection Selection::before(const Selection& rest) const {
  Selection both = *this;
  both.lines_.insert(both.lines_.end(), rest.lines_.begin(), rest.lines_.end());
  return both;
}

std::string Selection::choose(const Task& task, size_t element_bytes) const {
  const bool one_node = count_nodes(task.node_of) == 1;
  const auto does = [&](const Algorithm& algorithm) {
    return refusal_of(algorithm, task).empty() && (!task.ordered || algorithm.reproducible(task));
  };
  for (const Line& line : lines_)
    if (line.kind == task.kind && within_bound(static_cast<size_t>(task.ranks), line.ranks) &&
        agrees(one_node, line.one_node) && within_bound(task.count * element_bytes, line.bytes) &&
        agrees(task.ordered, line.reproducible)) {
      const Algorithm& algorithm = algorithm_named(line.algorithm);
      if (does(algorithm) && algorithm.drawback(task).empty()) return line.algorithm;
    }
  for (const Algorithm* algorithm : algorithms())
    if (does(*algorithm)) return std::string(algorithm->name);
  throw CommError(fmt::format("no {}algorithm does {} among {} ranks",
                              task.ordered ? "reproducible " : "", name_of(task.kind), task.ranks));
}

std::string explain_choice(const Task& task, size_t element_bytes, std::string_view algorithm) {
  const int nodes = count_nodes(task.node_of);
  if (nodes == 1 || nodes == task.ranks || algorithm == two_level.name) return "";
  if (two_level.refusal(task) == does_not_do(two_level.name, task)) return "";
  std::string why = refusal_of(two_level, task);
  if (why.empty()) why = two_level.drawback(task);
  if (why.empty()) why = "the table has it before two_level for this size";
  return fmt::format("{} of {} bytes among {} ranks on {} nodes goes by {}: {}", name_of(task.kind),
                     task.count * element_bytes, task.ranks, nodes, algorithm, why);
}

}  // namespace tutti::comm
