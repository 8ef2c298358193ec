#pragma once
// Compares a library's kernel with the plain one of ours (gpu:products), on the device, before it
// is taken: a library may be wrong on a device, or not have the same bits each time, and a training
// would not show it.

#include "tutti/backend/gpu/library/library_product.h"
#include "tutti/device/mirrors.h"

namespace tutti::backend {

/// Returns how far the largest distance of an element from gpu:products' may be, relative to the
/// largest element.
///
/// Operands are independent numbers of mean 0 that their types hold exactly, so products are exact
/// or round once, and a sum of n of them is about sqrt(n) large. Each of its additions rounds by at
/// most u = 2^-24 of the sum so far, to either side: in all u * n / sqrt(2), which is
/// u * sqrt(n / 2) of the sum. 4 * u * sqrt(n) leaves a margin of 5, for other trees and the end
/// (bias, activation: some u). Tensor cores cut off instead of rounding, up to 2u of the sum in
/// each addition, all to one side, with at least 4 products between two additions: n / 2 * u. A
/// result of 16 bits may be the neighbour of ours: one spacing, 2^-7 for bf16. What gpu:products
/// loses itself is less than u: it adds up 128 products at a time, in double precision.
double allowed_distance(const LibraryProduct& product);

/// Runs the candidate twice and gpu:products once on the same numbers, in memory of its own, and
/// waits. The refusal says how far the results are from each other, that they differ between two
/// runs, or why there are none. Throws DeviceError if the device has no memory, or is lost.
KernelTrial try_beside_own(device::Device& device, device::Mirrors& mirrors,
                           const KernelRequest& request, const LibraryProduct& product,
                           const KernelCandidate& candidate);

}  // namespace tutti::backend
