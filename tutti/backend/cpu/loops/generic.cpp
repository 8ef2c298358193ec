#include "tutti/backend/cpu/kernel/generic.h"

namespace tutti {

bool append_generic_candidates(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates) {
  for (const auto append :
       {append_pointwise_candidates, append_dense_candidates, append_pool_candidates,
        append_position_candidates, append_resize_candidates, append_spectrum_candidates,
        append_interaction_candidates, append_embedding_candidates, append_sample_candidates,
        append_shape_candidates, append_rows_candidates, append_parts_candidates,
        append_softmax_candidates, append_loss_candidates, append_update_candidates,
        append_channel_candidates})
    if (append(request, candidates)) return true;
  return false;
}

}  // namespace tutti
