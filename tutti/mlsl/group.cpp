#include "tutti/mlsl/group.h"

namespace tutti::mlsl {
namespace {
// Size of chunks between which a more urgent operation can pass; smaller ones cost bandwidth.
constexpr size_t kPassing = size_t{1} << 20;
}  // namespace

std::unique_ptr<comm::CollectiveOperation> Group::plan(comm::CollectiveSpec spec) {
  const Settings& settings = job_.settings();
  const size_t element = comm::size_of(spec.element);
  const size_t bytes = spec.count * element;
  if (settings.newest_first && bytes >= settings.priority_threshold)
    spec.chunk = kPassing / element;
  else if (settings.large_chunks > 1 && bytes >= settings.large_bytes)
    spec.chunk = (spec.count + settings.large_chunks - 1) / settings.large_chunks;
  return communicator_.plan(spec);
}

}  // namespace tutti::mlsl
