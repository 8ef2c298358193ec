#pragma once
// A descriptor of cuDNN's, by which its operation graphs are written down.

#include <cudnn_graph.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tutti/device/cuda/libraries/cudnn_functions.h"

namespace tutti::device {

/// Owns it; move-only. All calls throw DeviceError.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check_cudnn(cudnn_functions().create_descriptor(type, &handle_), "making a descriptor");
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (handle_) cudnn_functions().destroy_descriptor(handle_);
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::span<const T> values) {
    check_cudnn(cudnn_functions().set_attribute(handle_, name, type,
                                                static_cast<int64_t>(values.size()), values.data()),
                "describing the work");
    return *this;
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, values);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, int64_t value) {
    return set(name, std::span<const int64_t>(&value, 1));
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const T& value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.handle_);
  }
  CudnnDescriptor& finish(const char* doing) {
    check_cudnn(cudnn_functions().finalize(handle_), doing);
    return *this;
  }

  /// Returns at most `most` values of an attribute.
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     size_t most) const {
    std::vector<T> values(most);
    int64_t count = 0;
    check_cudnn(cudnn_functions().get_attribute(handle_, name, type, static_cast<int64_t>(most),
                                                &count, values.data()),
                "asking for an attribute");
    values.resize(static_cast<size_t>(count));
    return values;
  }
  int64_t number(cudnnBackendAttributeName_t name) const {
    return get<int64_t>(name, CUDNN_TYPE_INT64, 1).at(0);
  }
  /// Returns at most `most` descriptors of an attribute.
  std::vector<CudnnDescriptor> descriptors(cudnnBackendAttributeName_t name,
                                           cudnnBackendDescriptorType_t type, size_t most) const;
  /// Returns how many descriptors an attribute has; not known of knobs.
  int64_t count(cudnnBackendAttributeName_t name) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace tutti::device
