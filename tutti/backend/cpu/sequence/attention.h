#pragma once
// Attention and its gradient, head by head: keys and values of a head lie in panels, queries come
// in blocks of a few rows whose scores stay in cache. Sequences are f32 or bf16, channels last. A
// thread's memory grows with the number of keys, never with its square.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends "cpu:attention", or its refusal; returns false for other ops.
bool append_attention_candidates(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates);

}  // namespace tutti
