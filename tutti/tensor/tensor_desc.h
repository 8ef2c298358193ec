#pragma once
// TensorDesc: element type, shape and layout of a tensor. Says nothing about memory or device.

#include <string>

#include "tutti/tensor/dtype.h"
#include "tutti/tensor/layout.h"
#include "tutti/tensor/shape.h"

namespace tutti {

struct TensorDesc {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;

  int64_t elements() const { return shape.elements(); }
  /// Returns the bytes of storage, layout padding included.
  size_t bytes() const {
    return static_cast<size_t>(layout.storage_elements(shape)) * size_of(dtype);
  }
  bool operator==(const TensorDesc&) const = default;
  std::string to_string() const {
    std::string text(name_of(dtype));
    text.append(" ").append(shape.to_string());
    if (!layout.is_plain()) text.append(" ").append(layout.to_string(shape.rank()));
    return text;
  }
};

}  // namespace tutti
