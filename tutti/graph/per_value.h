#pragma once
// A table with one entry for every value of a graph.

#include <utility>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti::graph {

template <class T>
class PerValue {
 public:
  PerValue() = default;
  /// Every value's entry starts as `each`. Values added to the graph later have none.
  explicit PerValue(const Graph& graph, T each = {})
      : entries_(graph.values().size(), std::move(each)) {}

  T& operator[](Value v) { return entries_[static_cast<size_t>(v.id)]; }
  const T& operator[](Value v) const { return entries_[static_cast<size_t>(v.id)]; }

 private:
  std::vector<T> entries_;
};

}  // namespace tutti::graph
