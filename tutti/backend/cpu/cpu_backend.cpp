#include "tutti/backend/cpu/cpu_backend.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/reference/reference.h"

namespace tutti::backend {

std::vector<KernelCandidate> CpuBackend::candidates(const KernelRequest& request) const {
  KernelCandidates found = cpu_kernels().candidates(request);
  std::ranges::move(ReferenceBackend().candidates(request),
                    std::back_inserter(found));  // always works; the plan reports its use
  return found;
}

std::vector<Layout> CpuBackend::activation_layouts(const Shape& shape, DType) const {
  if (shape.rank() < 3) return {Layout::plain()};
  if (shape.rank() == 3) return {Layout::channels_last(3)};  // a sequence: vectors of positions
  std::vector<Layout> layouts;
  if (shape[1] < 16) return {Layout::plain(), Layout::channels_last(shape.rank())};
  if (shape[1] % 16 == 0) layouts.push_back(Layout::blocked_channels(16));
  layouts.push_back(Layout::channels_last(shape.rank()));
  return layouts;
}

size_t CpuBackend::tile_bytes() const {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    return static_cast<size_t>(bytes);
#endif
  return size_t{1} << 20;
}

}  // namespace tutti::backend
