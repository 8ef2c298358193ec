#include "tutti/cli/bench/comm_tuned_lines.h"

#include <cmath>
#include <map>

namespace tutti {
namespace {

using BySize = std::map<size_t, std::vector<const AlgorithmTime*>>;

const AlgorithmTime& winner(const std::vector<const AlgorithmTime*>& candidates,
                            const std::string& before, double tie) {
  const AlgorithmTime* best = candidates.front();
  const AlgorithmTime* keeper = nullptr;
  for (const AlgorithmTime* candidate : candidates) {
    if (candidate->seconds < best->seconds) best = candidate;
    if (candidate->algorithm == before) keeper = candidate;
  }
  return keeper != nullptr && keeper->seconds <= best->seconds * (1 + tie) ? *keeper : *best;
}

void append_lines(const BySize& sizes, comm::Selection::Line line, double tie,
                  std::vector<comm::Selection::Line>& lines) {
  size_t before = 0;
  for (const auto& [bytes, candidates] : sizes) {
    const std::string& algorithm = winner(candidates, line.algorithm, tie).algorithm;
    if (!line.algorithm.empty() && algorithm != line.algorithm) {
      line.bytes =
          static_cast<size_t>(std::sqrt(static_cast<double>(before) * static_cast<double>(bytes)));
      lines.push_back(line);
    }
    line.algorithm = algorithm;
    before = bytes;
  }
  line.bytes = 0;
  if (!line.algorithm.empty()) lines.push_back(line);
}

}  // namespace

std::vector<comm::Selection::Line> fastest_lines(std::span<const AlgorithmTime> times, int ranks,
                                                 bool one_node, double tie) {
  std::vector<comm::Selection::Line> lines;
  for (int k = 0; k < comm::kCollectives; ++k) {
    const auto kind = static_cast<comm::Collective>(k);
    BySize tree, all;
    bool others = false;
    for (const AlgorithmTime& time : times) {
      if (time.kind != kind) continue;
      all[time.bytes].push_back(&time);
      if (time.reproducible) tree[time.bytes].push_back(&time);
      others |= !time.reproducible;
    }
    comm::Selection::Line line{.kind = kind,
                               .ranks = static_cast<size_t>(ranks),
                               .one_node = one_node,
                               .bytes = 0,
                               .reproducible = {},
                               .algorithm = {}};
    if (others) {
      line.reproducible = false;
      append_lines(all, line, tie, lines);
      line.reproducible = true;
    }
    append_lines(tree, line, tie, lines);
  }
  return lines;
}

}  // namespace tutti
