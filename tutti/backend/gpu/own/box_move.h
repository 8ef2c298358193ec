#pragma once
// Copies of boxes of elements between any strides, on the device.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/backend/gpu/kernels/copies.h"
#include "tutti/device/device.h"
#include "tutti/tensor/dtype.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

/// A loop over a dimension of the operand that is written. Index first + gap * i holds index i of
/// the one that is read, for i < inside.
struct BoxLoop {
  int64_t count, to, from;  ///< steps in elements
  int64_t first = 0, gap = 1, inside = count;

  bool is_whole() const { return first == 0 && gap == 1 && inside == count; }
};

/// Returns loops over all elements of two operands of one shape, which have strides.
std::vector<BoxLoop> box_over(const TensorDesc& from, const TensorDesc& to);

/// The types of what is read and of what is written.
struct BoxTypes {
  DType from, to;
};

/// Returns the bits of a value of this type, repeated in all bytes of a word.
uint32_t repeated_bits(DType type, float value);

/// A copy of elements from any strides to any others, with a conversion where the types differ
/// (ops/reorder.h). All is chosen when it is made; run() launches one kernel. The device outlives
/// it.
class BoxMove {
 public:
  /// The box begins at these elements of both operands. Elements that it leaves free are filled
  /// with `fill` (repeated_bits), which must be given if it leaves any.
  BoxMove(const device::Device& device, BoxTypes types, std::vector<BoxLoop> loops,
          int64_t from_start, int64_t to_start, std::optional<uint32_t> fill = {});
  /// Both addresses are multiples of their elements' size.
  void run(device::Stream& stream, const void* from, void* to) const;

 private:
  /// A kernel that copies packs of a size.
  struct Form {
    const device::DeviceFunction* function = nullptr;
    size_t from_bytes = 1, to_bytes = 1;  ///< addresses must be multiples
    FillBoxArgs args{};
  };

  Form prepare(const device::Device& device, BoxTypes types, const std::vector<BoxLoop>& loops,
               int64_t pack) const;
  void prepare_turn(const device::Device& device, BoxTypes types,
                    const std::vector<BoxLoop>& loops);

  int64_t from_start_, to_start_;  // in bytes
  bool filled_;
  Form narrow_, wide_;  // wide_ only where its packs fit
  const device::DeviceFunction* turn_ = nullptr;
  TurnArgs turn_args_{};
  unsigned blocks_ = 0;
};

/// Returns a copy of all elements to another layout or type; both operands have strides.
BoxMove move_all(const device::Device& device, const TensorDesc& from, const TensorDesc& to);

}  // namespace tutti::backend
