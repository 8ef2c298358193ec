#pragma once
// Batch-norm kernels for CPUs, written here: each makes one pass over a tile, at the bandwidth of
// the cache that holds the tile. Activations are f32 or bf16, all of one type and one layout of the
// form [N, C/b, positions, b]; statistics, parameters and their gradients are plain f32. Sums are
// f32 within a tile and double across tiles and threads; variances are combined from tiles' means
// and squared deviations, so a large mean costs no digits. They work in place where the ops allow
// it.

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"

namespace tutti::backend {

/// Returns the candidate for a batch-norm op, still without its kernel, or its refusal.
KernelCandidate batch_norm_candidate(const KernelRequest& request);

/// Returns the candidate K<type of y>(view, args...).
template <template <class> class K, class... Args>
KernelCandidate batch_norm_kernel(const KernelRequest& r, const Args&... args) {
  KernelCandidate c = batch_norm_candidate(r);
  if (c.refusal.empty())
    choose_kernel<K>(c, r.in[0].dtype, "batch norm", channel_view(r.in[0]), args...);
  return c;
}

}  // namespace tutti::backend
