#include "tutti/backend/gpu/own/own_kernels.h"

#include <fmt/format.h>

namespace tutti::backend {

std::vector<KernelCandidate> OwnKernels::candidates(const KernelRequest& request,
                                                    device::Device& device) const {
  std::vector<KernelCandidate> found;
  const graph::Op& op = *request.op;
  if (const auto makers = makers_.find(typeid(op)); makers != makers_.end())
    for (const Maker& make : makers->second) found.push_back(make(request, device));
  return found;
}

KernelCandidate own_candidate(const KernelRequest& request, std::string_view name) {
  KernelCandidate c{.name = fmt::format("gpu:{}", name),
                    .refusal = {},
                    .in = request.in,
                    .out = request.out,
                    .make = {}};
  for (size_t i = 0; i < c.in.size(); ++i)
    if (i < request.in_free.size() && request.in_free[i])
      c.in[i] = {DType::f32, request.in[i].shape, {}};
  for (size_t i = 0; i < c.out.size(); ++i)
    if (i < request.out_free.size() && request.out_free[i]) c.out[i].layout = Layout::plain();
  return c;
}

const OwnKernels& own_kernels() {
  static const OwnKernels all = [] {
    OwnKernels table;
    register_all(table);
    return table;
  }();
  return all;
}

}  // namespace tutti::backend
