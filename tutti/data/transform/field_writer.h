#pragma once
// A FieldWriter writes one field of one sample to its place in a minibatch: placement, values, type
// and layout in one pass.

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/dataset.h"
#include "tutti/data/transform/values.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::data {

/// The random choices for one sample, the same for all its fields: a pure function of (seed, epoch,
/// index). index < 2^40, epoch < 2^24.
class Chance {
 public:
  Chance(uint64_t seed, int64_t epoch, int64_t index);

  /// Return uniform numbers in [0, bound). Every use has its own draw, so that switching one step
  /// on or off does not change the others. Axis 0 is the last one.
  int64_t crop(int axis, int64_t bound) const { return below(kCrop[at(axis)], bound); }
  bool flip(int axis) const { return below(kFlip[at(axis)], 2) == 1; }
  int64_t symmetry(int64_t bound) const { return below(6, bound); }
  /// Returns a generator for a step that needs more numbers.
  Rng window() const { return {seed_, Purpose::window, stream_}; }

 private:
  static constexpr std::array<size_t, kMostAxes> kCrop = {1, 0, 3}, kFlip = {2, 4, 5};
  static size_t at(int axis) { return static_cast<size_t>(axis); }
  int64_t below(size_t draw, int64_t bound) const {
    return static_cast<int64_t>(uint64_t{draws_[draw]} * static_cast<uint64_t>(bound) >> 32);
  }
  uint64_t seed_, stream_;
  std::array<uint32_t, 7> draws_;
};

/// The elements [first, last) of a dimension of a batch's tensor: the rows that a rank needs.
struct BatchRows {
  int dim = 1;
  int64_t first = 0, last = 0;
};

/// The batch is a tensor [N, placed field ...], up to extents of 1 (field_fit.h), in f32, bf16 or,
/// for integers without value steps, i32, in any layout. Channel padding of a blocked layout is not
/// written: zero it once. Padding zeros are zeros of the stored field, so they go through the value
/// steps. Immutable: calls for different positions may run on different threads.
///
/// "crop pad 4, flip x, divide 255, normalise" equals, bit for bit in f32, torchvision's
/// RandomCrop(size, padding 4), RandomHorizontalFlip, ToTensor, Normalize.
class FieldWriter {
 public:
  /// ConfigError naming the field if a step does not fit it. `rows`: the part of a dimension that
  /// must be written, if not all; other rows may or may not be written.
  FieldWriter(const Field& stored, const FieldSteps& steps, const TensorDesc& batch,
              std::optional<BatchRows> rows = {});

  const TensorDesc& batch() const { return batch_; }
  const ValueFunction& values() const { return values_; }
  /// Writes the elements of `stored`, rows last, to position `position` of `batch`. Without
  /// `chance`, crops are centred and nothing is mirrored.
  void write(const void* stored, const Chance* chance, int64_t position, void* batch) const;
  /// Returns the rows of the stored field that write() uses, perhaps fewer than it touches.
  FieldRows stored_rows(const Chance* chance) const;

 private:
  /// Says where the elements along one axis of the result come from.
  struct AxisMap {
    int dim = 0;                              ///< dimension of the placed field, from 1
    int stored = 0;                           ///< axis of the stored field
    int64_t begin = 0;                        ///< place of element 0, in stored elements
    int64_t stride = 0;                       ///< in stored elements; negative where mirrored
    int64_t first = 0, last = 0, extent = 0;  ///< elements of [first, last) are stored
    int64_t begin_at = 0, end_at = 0;         ///< elements to write, unless this is the inner axis
  };
  using Axes3 = std::array<AxisMap, Shape::kMaxRank>;

  struct Window {  ///< along one axis, counted from the last
    int64_t start = 0;
    bool mirrored = false;
  };
  std::array<Window, kMostAxes> windows(const Chance* chance) const;
  int place(const Chance* chance, Axes3& axes) const;
  void make_tables();
  template <class Row>
  void walk(const Axes3& axes, int rank, int64_t position, Row row) const;
  template <class T>
  void write_from_table(const void* stored, const Axes3& axes, int rank, int64_t position,
                        void* batch) const;
  template <class T>
  void write_values(const void* stored, const Axes3& axes, int rank, int64_t position,
                    void* batch) const;
  void write_numbers(const void* stored, const Axes3& axes, int rank, int64_t position,
                     void* batch) const;

  Field stored_;
  Placement placement_;
  ValueFunction values_;
  TensorDesc batch_;
  std::optional<BatchRows> rows_;                         ///< dim of the placed field, from 1
  std::array<int64_t, Shape::kMaxRank> stored_stride_{};  ///< strides of the permuted axes
  Shape permuted_, placed_;
  // The result for each stored number of one or two bytes, for each channel if they differ; empty
  // if the table would be too large.
  std::vector<float> floats_;
  std::vector<bf16> halves_;
  int64_t table_entries_ = 0;
  // A layout offset is a sum with one term per dimension: the batch's, then the placed field's.
  std::array<std::vector<int64_t>, Shape::kMaxRank> offset_;
  std::array<int64_t, Shape::kMaxRank> offset_stride_{};  ///< where linear, otherwise 0
};

}  // namespace tutti::data
