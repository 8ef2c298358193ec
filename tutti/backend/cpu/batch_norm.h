#pragma once
// Batch-norm kernels for CPUs, written here: each makes one pass over a tile, at the bandwidth of
// the cache that holds the tile.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidate for a batch-norm op; returns false for other ops. Activations are f32 or
/// bf16, all of one type and one layout of the form [N, C/b, positions, b]; statistics, parameters
/// and their gradients are plain f32. Sums are f32 within a tile and double across tiles and
/// threads; variances are combined from tiles' means and squared deviations, so a large mean costs
/// no digits. Works in place where the ops allow it.
bool append_batch_norm_candidates(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);

}  // namespace tutti
