#pragma once
// FieldWriter: one field of one sample to its place in a minibatch: placement, values, type and
// layout in one pass.

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

/// What chance decides of one sample, the same for all its fields: a pure function of (seed, epoch,
/// index). index < 2^40, epoch < 2^24.
class Chance {
 public:
  Chance(uint64_t seed, int64_t epoch, int64_t index);

  /// Uniform in [0, bound). Every use has a draw of its own, so that switching one step on or off
  /// leaves the others as they were. Axis 0 is the last one.
  int64_t crop(int axis, int64_t bound) const { return below(kCrop[at(axis)], bound); }
  bool flip(int axis) const { return below(kFlip[at(axis)], 2) == 1; }
  int64_t symmetry(int64_t bound) const { return below(6, bound); }
  /// For a step that needs more numbers than these, as many as it likes.
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

/// Elements [first, last) of a dimension of a batch's tensor: the rows that a rank needs.
struct BatchRows {
  int dim = 1;
  int64_t first = 0, last = 0;
};

/// The batch is a tensor [N, placed field ...], extents of 1 aside (field_fit.h), of f32, bf16 or,
/// of integers without value steps, i32, in any layout. Channel padding of a blocked layout is not
/// written: zero it once. Zeros of padding are zeros of the stored field, so they go through the
/// value steps. Immutable: calls for different positions may run on different threads.
///
/// "crop pad 4, flip x, divide 255, normalise" equals, bit for bit in f32, torchvision's
/// RandomCrop(size, padding 4), RandomHorizontalFlip, ToTensor, Normalize.
class FieldWriter {
 public:
  /// ConfigError naming the field if a step does not fit it.
  /// `rows`: what is to be written of a dimension, if not all; others are written or not.
  FieldWriter(const Field& stored, const FieldSteps& steps, const TensorDesc& batch,
              std::optional<BatchRows> rows = {});

  const TensorDesc& batch() const { return batch_; }
  const ValueFunction& values() const { return values_; }
  /// Elements of `stored`, rows last, to position `position` of `batch`. Without `chance` crops are
  /// taken from the middle and nothing is mirrored.
  void write(const void* stored, const Chance* chance, int64_t position, void* batch) const;
  /// What write() reads of the stored field, and perhaps less than it looks at.
  FieldRows stored_rows(const Chance* chance) const;

 private:
  /// Where the elements along one axis of the result come from.
  struct AxisMap {
    int dim = 0;                              ///< of the placed field, from 1
    int stored = 0;                           ///< axis of the stored field
    int64_t begin = 0;                        ///< of its element 0, in stored elements
    int64_t stride = 0;                       ///< in stored elements; negative where mirrored
    int64_t first = 0, last = 0, extent = 0;  ///< elements of [first, last) are stored
    int64_t begin_at = 0, end_at = 0;         ///< those to be written, where it is no inner axis
  };
  using Axes3 = std::array<AxisMap, Shape::kMaxRank>;

  struct Window {  ///< along one axis from the end
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
  std::array<int64_t, Shape::kMaxRank> stored_stride_{};  ///< of the permuted axes
  Shape permuted_, placed_;
  // What each stored number of one or two bytes becomes, for each channel where they differ; empty
  // where that would be too much.
  std::vector<float> floats_;
  std::vector<bf16> halves_;
  int64_t table_entries_ = 0;
  // Layout offsets are sums of one term per dimension: of the batch, then of the placed field.
  std::array<std::vector<int64_t>, Shape::kMaxRank> offset_;
  std::array<int64_t, Shape::kMaxRank> offset_stride_{};  ///< where linear, otherwise 0
};

}  // namespace tutti::data
