#pragma once
// Kernels for everything that is neither convolution nor batch norm nor Reorder: own loops, f32 and
// bf16, each family in its own generic_*.cpp. Activations may have any layout without padding;
// loops are vectorised where the layouts of a request allow it, and otherwise use offsets by
// dimension.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends a candidate, possibly a refusal, and returns true if the op belongs to one of the
/// families below.
bool append_generic_candidates(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);

bool append_pointwise_candidates(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates);
bool append_dense_candidates(const KernelRequest& request,
                             std::vector<KernelCandidate>& candidates);
/// Handles the ops of append_dense_candidates.
void append_onednn_dense_candidates(const KernelRequest& request,
                                    std::vector<KernelCandidate>& candidates);
bool append_pool_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);
bool append_position_candidates(const KernelRequest& request,
                                std::vector<KernelCandidate>& candidates);
bool append_embedding_candidates(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates);
bool append_interaction_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates);
bool append_resize_candidates(const KernelRequest& request,
                              std::vector<KernelCandidate>& candidates);
bool append_spectrum_candidates(const KernelRequest& request,
                                std::vector<KernelCandidate>& candidates);
/// Handles norms over the channels of a position.
bool append_layer_norm_candidates(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/sequence/lookup.h.
bool append_token_candidates(const KernelRequest& request,
                             std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/sequence/token_loss.h.
bool append_token_loss_candidates(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/sequence/token_head.h.
bool append_token_head_candidates(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/sequence/token_slice.h.
bool append_token_slice_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/rank_sums.h.
bool append_rank_sum_candidates(const KernelRequest& request,
                                std::vector<KernelCandidate>& candidates);
bool append_sample_candidates(const KernelRequest& request,
                              std::vector<KernelCandidate>& candidates);
bool append_shape_candidates(const KernelRequest& request,
                             std::vector<KernelCandidate>& candidates);
bool append_rows_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);
bool append_parts_candidates(const KernelRequest& request,
                             std::vector<KernelCandidate>& candidates);
bool append_loss_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);
bool append_softmax_candidates(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);
bool append_update_candidates(const KernelRequest& request,
                              std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/norm_update.h and ops/clip.h.
bool append_norm_update_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates);
/// Handles BiasBackward and ConvTranspose.
bool append_channel_candidates(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);

}  // namespace tutti
