#include "tutti/backend/cpu/kernel/kernel_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tutti::backend {

void KernelTable::take(KernelCandidate made, KernelCandidates& found) {
  found.push_back(std::move(made));
}

void KernelTable::take(KernelCandidates made, KernelCandidates& found) {
  std::ranges::move(made, std::back_inserter(found));
}

void KernelTable::put(std::type_index op, const Entry& entry, int place) {
  lists_[op].kernels.emplace(place, entry);
}

void KernelTable::put_adapter(std::type_index op, const Entry& entry, int place) {
  lists_[op].adapters.emplace(place, entry);
}

KernelCandidates KernelTable::kernels(const KernelRequest& request) const {
  KernelCandidates found;
  const graph::Op& op = *request.op;
  if (const auto lists = lists_.find(typeid(op)); lists != lists_.end())
    for (const auto& [place, entry] : lists->second.kernels)
      entry.append(entry.make, request, found);
  return found;
}

KernelCandidates KernelTable::candidates(const KernelRequest& request) const {
  KernelCandidates found = kernels(request);
  const graph::Op& op = *request.op;
  if (const auto lists = lists_.find(typeid(op)); lists != lists_.end())
    for (const auto& [place, entry] : lists->second.adapters)
      entry.append(entry.make, request, found);
  return found;
}

const KernelTable& cpu_kernels() {
  static const KernelTable all = [] {
    KernelTable table;
    register_all(table);
    return table;
  }();
  return all;
}

}  // namespace tutti::backend
