#include "tutti/comm/algorithm/nodes.h"

#include <numeric>

namespace tutti::comm {
namespace {

// The ranks of other nodes in a line before one node's workers. A rank's weight is its block plus
// an average block.
class WorkLine {
 public:
  /// Takes the number of ranks on other nodes, and of their elements altogether.
  WorkLine(size_t ranks, size_t elements, size_t workers)
      : ranks_(ranks), elements_(elements), stretch_(weight(ranks, elements) / workers + 1) {}

  // Returns the worker of a rank from what is before it in line: the worker on whose stretch the
  // rank's middle lies.
  size_t worker(size_t ranks_before, size_t elements_before, size_t block) const {
    return (weight(ranks_before, elements_before) + weight(1, block) / 2) / stretch_;
  }

 private:
  size_t weight(size_t some_ranks, size_t some_elements) const {
    return some_ranks * elements_ + ranks_ * some_elements;
  }
  size_t ranks_, elements_, stretch_;
};

size_t elements_of(const NodeTable& table, std::span<const Slice> blocks, int node) {
  size_t elements = 0;
  for (const int p : table.ranks_of(node)) elements += blocks[static_cast<size_t>(p)].count;
  return elements;
}

size_t sum_of(std::span<const Slice> blocks) {
  size_t elements = 0;
  for (const Slice& block : blocks) elements += block.count;
  return elements;
}

}  // namespace

NodeTable::NodeTable(const Task& task) : node_of_(task.node_of) {
  node_of_.resize(static_cast<size_t>(task.ranks));
  first_.assign(static_cast<size_t>(count_nodes(node_of_)) + 1, 0);
  for (const int node : node_of_) ++first_[static_cast<size_t>(node) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<int> next(first_.begin(), first_.end() - 1);
  by_node_.resize(node_of_.size());
  for (int p = 0; p < task.ranks; ++p)
    by_node_[static_cast<size_t>(next[static_cast<size_t>(node(p))]++)] = p;
}

std::span<const int> NodeTable::ranks_of(int node) const {
  const auto k = static_cast<size_t>(node);
  return std::span(by_node_).subspan(static_cast<size_t>(first_[k]),
                                     static_cast<size_t>(first_[k + 1] - first_[k]));
}

bool NodeTable::equal() const {
  for (int k = 1; k < nodes(); ++k)
    if (size(k) != size(0)) return false;
  return true;
}

bool NodeTable::contiguous(int node) const {
  const std::span<const int> some = ranks_of(node);
  return some.back() - some.front() == static_cast<int>(some.size()) - 1;
}

std::vector<std::vector<int>> dealt_on(const NodeTable& table, std::span<const Slice> blocks,
                                       int node) {
  const auto workers = static_cast<size_t>(table.size(node));
  const WorkLine line(static_cast<size_t>(table.ranks()) - workers,
                      sum_of(blocks) - elements_of(table, blocks, node), workers);
  std::vector<std::vector<int>> dealt(workers);
  size_t ranks = 0, elements = 0;
  for (int q = 0; q < table.ranks(); ++q) {
    if (table.node(q) == node) continue;
    const size_t block = blocks[static_cast<size_t>(q)].count;
    dealt[line.worker(ranks, elements, block)].push_back(q);
    ++ranks;
    elements += block;
  }
  return dealt;
}

std::vector<int> workers_of(const NodeTable& table, std::span<const Slice> blocks, int rank) {
  const auto nodes = static_cast<size_t>(table.nodes());
  std::vector<size_t> elements(nodes), ranks_before(nodes), elements_before(nodes);
  for (int p = 0; p < table.ranks(); ++p) {
    const auto k = static_cast<size_t>(table.node(p));
    const size_t block = blocks[static_cast<size_t>(p)].count;
    elements[k] += block;
    if (p >= rank) continue;
    ++ranks_before[k];
    elements_before[k] += block;
  }
  const size_t all = std::reduce(elements.begin(), elements.end());
  const size_t all_before = std::reduce(elements_before.begin(), elements_before.end());
  std::vector<int> workers;
  for (size_t k = 0; k < nodes; ++k) {
    const std::span<const int> there = table.ranks_of(static_cast<int>(k));
    const WorkLine line(static_cast<size_t>(table.ranks()) - there.size(), all - elements[k],
                        there.size());
    workers.push_back(static_cast<int>(k) == table.node(rank)
                          ? rank
                          : there[line.worker(static_cast<size_t>(rank) - ranks_before[k],
                                              all_before - elements_before[k],
                                              blocks[static_cast<size_t>(rank)].count)]);
  }
  return workers;
}

std::vector<Slice> joined(std::span<const Slice> blocks, std::span<const int> ranks) {
  std::vector<Slice> all;
  for (const int p : ranks) {
    const Slice block = blocks[static_cast<size_t>(p)];
    if (block.count == 0) continue;
    if (!all.empty() && all.back().end() == block.begin)
      all.back().count += block.count;
    else
      all.push_back(block);
  }
  return all;
}

}  // namespace tutti::comm
