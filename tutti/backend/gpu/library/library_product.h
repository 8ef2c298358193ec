#pragma once
// Requests as products that libraries of the device's maker compute (device/libraries.h).

#include <string>
#include <variant>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/gpu/kernels/products.h"
#include "tutti/device/libraries.h"

namespace tutti::backend {

using LibraryAsked = std::variant<device::LibraryConvolution, device::LibraryDense>;

/// One form in which a library may be asked for a request.
struct LibraryProduct {
  LibraryAsked asked;
  /// Operands as the kernel takes them from the plan.
  std::vector<TensorDesc> in, out;
  /// Operands as the library takes them, with the shapes that the plan's have. The kernel copies
  /// those that lie otherwise in the plan.
  TensorDesc first, second, result;
  int64_t terms = 1;                  ///< an element of the result is the sum of so many products
  bool bias_after = false;            ///< in[2] is added after the call
  bool bias_in_call = false;          ///< the library adds in[2]
  ProductEnd end = ProductEnd::none;  ///< the activation after the call
  float slope = 0;                    ///< leaky_relu's
  double error = 1;                   ///< as KernelCandidate::error
  std::string refusal;                ///< why this form cannot be asked for
};

/// Returns the type of the library's factors.
device::LibraryType type_of(const LibraryAsked& asked);

/// Returns the forms to ask for, best first; none for an op that is no such product. f32 factors
/// may be rounded to 10 bits where `tf32`.
std::vector<LibraryProduct> library_products(const KernelRequest& request, bool tf32);

/// Whether both descs are of one type and have each element at the same place. Both have one shape.
bool same_memory(const TensorDesc& a, const TensorDesc& b);

}  // namespace tutti::backend
