#include "tutti/device/cuda/libraries/cudnn_descriptor.h"

#include <algorithm>

namespace tutti::device {

std::vector<CudnnDescriptor> CudnnDescriptor::descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type,
                                                          size_t most) const {
  std::vector<CudnnDescriptor> all;
  std::vector<cudnnBackendDescriptor_t> handles;
  while (all.size() < most) handles.push_back(all.emplace_back(type).handle());
  int64_t count = 0;
  check_cudnn(cudnn_functions().get_attribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              static_cast<int64_t>(most), &count, handles.data()),
              "asking for descriptors");
  all.erase(all.begin() + std::clamp<int64_t>(count, 0, static_cast<int64_t>(most)), all.end());
  return all;
}

int64_t CudnnDescriptor::count(cudnnBackendAttributeName_t name) const {
  int64_t count = 0;
  check_cudnn(cudnn_functions().get_attribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                              &count, nullptr),
              "asking for the number of descriptors");
  return count;
}

}  // namespace tutti::device
