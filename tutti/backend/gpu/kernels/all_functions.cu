#include <vector>

#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {

std::span<const device::DeviceFunction> own_functions() {
  static const std::vector<device::DeviceFunction> all = [] {
    std::vector<device::DeviceFunction> list;
    for (const auto family : {batch_norm_functions, channel_sums_functions, copies_functions,
                              gradients_functions, losses_functions, pointwise_functions,
                              pools_functions, products_functions, updates_functions})
      for (const device::DeviceFunction& f : family()) list.push_back(f);
    return list;
  }();
  return all;
}

}  // namespace tutti::backend
