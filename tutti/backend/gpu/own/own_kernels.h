#pragma once
// Which own kernels of the GPU back end an op has. A file of own kernels defines
//   void register_NAME(OwnKernels& table) { table.add<Op>(maker); }
// and is found by the build, which writes the list that calls all of them.

#include <functional>
#include <map>
#include <string_view>
#include <typeindex>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/device.h"

namespace tutti::backend {

class OwnKernels {
 public:
  /// Registers `make` for each of the ops O. It is called as make(request, op, device) and returns
  /// one candidate, which may be a refusal. The request's tile is the whole batch. Kernels of an op
  /// stand in the order of registration.
  template <class... O, class Make>
  void add(Make make) {
    (makers_[typeid(O)].push_back([make](const KernelRequest& r, device::Device& device) {
      return KernelCandidate(make(r, static_cast<const O&>(*r.op), device));
    }),
     ...);
  }

  bool has(const graph::Op& op) const { return makers_.contains(typeid(op)); }
  /// Returns the candidates of the op's kernels, refusals included; none for an op that has none.
  std::vector<KernelCandidate> candidates(const KernelRequest& request,
                                          device::Device& device) const;

 private:
  using Maker = std::function<KernelCandidate(const KernelRequest&, device::Device&)>;
  std::map<std::type_index, std::vector<Maker>> makers_;
};

/// Returns a candidate "gpu:NAME" with the request's descs, where free operands are plain and f32.
KernelCandidate own_candidate(const KernelRequest& request, std::string_view name);

/// Calls the register functions of all files of own kernels; the build writes it.
void register_all(OwnKernels& table);

/// Returns the table of all own kernels, which is made at the first call.
const OwnKernels& own_kernels();

}  // namespace tutti::backend
