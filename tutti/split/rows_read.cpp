#include "tutti/split/split.h"

#include <algorithm>

#include "tutti/ops/rows.h"

namespace tutti::split {

std::optional<RowsRead> rows_read(const graph::Graph& graph, graph::Value input) {
  std::optional<RowsRead> read;
  for (const graph::Node& node : graph.nodes()) {
    if (std::ranges::find(node.in, input) == node.in.end()) continue;
    const auto* gather = dynamic_cast<const ops::GatherRows*>(node.op.get());
    if (gather == nullptr || node.in.front() != input || gather->cut().slabs != 1) return {};
    const int dim = gather->cut().dim;
    if (read && read->dim != dim) return {};
    const int64_t extent = graph.shape(input)[dim];
    for (const graph::Rows window : gather->cut().windows) {
      const graph::Rows held{std::clamp<int64_t>(window.first, 0, extent),
                             std::clamp<int64_t>(window.last, 0, extent)};
      if (held.count() <= 0) continue;
      if (!read) read = RowsRead{dim, held};
      read->rows.first = std::min(read->rows.first, held.first);
      read->rows.last = std::max(read->rows.last, held.last);
    }
  }
  if (read && read->rows.count() == graph.shape(input)[read->dim]) return {};
  return read;
}

}  // namespace tutti::split
