#include "tutti/backend/cpu/kernel/kernel_table.h"

namespace tutti::backend {

KernelCandidates KernelTable::kernels(const KernelRequest& request) const {
  KernelCandidates found;
  const graph::Op& op = *request.op;
  if (const auto lists = lists_.find(typeid(op)); lists != lists_.end())
    for (const auto& [place, append] : lists->second.kernels) append(request, found);
  return found;
}

KernelCandidates KernelTable::candidates(const KernelRequest& request) const {
  KernelCandidates found = kernels(request);
  const graph::Op& op = *request.op;
  if (const auto lists = lists_.find(typeid(op)); lists != lists_.end())
    for (const auto& [place, append] : lists->second.adapters) append(request, found);
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
