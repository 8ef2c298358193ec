#include "tutti/backend/cpu/conv_candidates.h"

#include "tutti/backend/cpu/conv.h"
#include "tutti/backend/cpu/conv_mirrored.h"
#include "tutti/backend/cpu/conv_turned.h"
#include "tutti/backend/cpu/conv_widened.h"

namespace tutti {

bool append_every_conv_candidate(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates) {
  if (!append_conv_candidates(request, candidates)) return false;
  append_mirrored_conv_candidates(request, candidates);
  append_widened_conv_candidates(request, candidates);
  append_turned_conv_candidates(request, candidates);
  return true;
}

}  // namespace tutti
