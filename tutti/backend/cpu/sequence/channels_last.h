#pragma once
// Kernels of sequences use channels last. With channels_last(maker) they also take sequences in
// other layouts, which are copied before and after.

#include <concepts>
#include <cstdint>

#include "tutti/backend/cpu/kernel/kernel_table.h"

namespace tutti::backend {

/// Which operands are sequences: those of rank 3 and more among so many first inputs and outputs.
/// Others are weights or their gradients, whatever their rank.
struct SequenceForm {
  size_t inputs = SIZE_MAX, outputs = SIZE_MAX;
  bool shared = false;  ///< the team shares the op
};

using MakeCandidate = std::function<KernelCandidate(const KernelRequest&)>;

/// Returns make(request) and, if it refuses and a sequence has another layout, also what it makes
/// for channels last, as "NAME, turned".
KernelCandidates with_turned(const KernelRequest& request, const MakeCandidate& make,
                             const SequenceForm& form);

/// Returns the maker, for KernelTable::add, of with_turned's candidates. `form` is a SequenceForm,
/// or is called as form(op).
template <class Make, class Form = SequenceForm>
auto channels_last(Make make, Form form = {}) {
  return [make, form]<class O>(const KernelRequest& request, const O& op) {
    const auto made = [&](const KernelRequest& r) { return made_by(make, r, op); };
    if constexpr (std::same_as<Form, SequenceForm>)
      return with_turned(request, made, form);
    else
      return with_turned(request, made, form(op));
  };
}

}  // namespace tutti::backend
