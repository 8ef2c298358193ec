#pragma once
// Field: one named array of a sample. Images, labels, masks, volumes and targets are fields alike.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/data/element_type.h"
#include "tutti/tensor/shape.h"

namespace tutti::data {

/// What is known of a field's values over the whole training set, one number a channel (the first
/// axis, after permutation) or one for all. Empty: not known. Of bytes (u8): of the values divided
/// by 255.
struct FieldStatistics {
  std::vector<float> mean{}, deviation{};
  std::vector<float> least{}, greatest{};
};

struct Field {
  std::string name;  ///< "image", "label"
  ElementType element = ElementType::u8;
  Shape shape{};                           ///< of one sample, rows last; rank 0: one number
  std::vector<std::string> class_names{};  ///< of class numbers 0, 1, ...; empty: not class numbers
  FieldStatistics statistics{};

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(element); }
  /// "u8 image 3x32x32"
  std::string to_string() const;
};

/// Memory for one sample of a data set, which a reader thread owns.
class Sample {
 public:
  Sample() = default;
  explicit Sample(std::span<const Field> fields);

  /// Where a data set writes field `f`, field.bytes() bytes.
  void* own(size_t f) {
    seen_[f] = memory_.data() + offsets_[f];
    return memory_.data() + offsets_[f];
  }
  /// Instead of writing: the bytes lie in memory that stays while the data set is open, or while
  /// `keeper` does, which the sample holds until the field is shown again.
  void show(size_t f, const void* bytes, std::shared_ptr<const void> keeper = {}) {
    seen_[f] = static_cast<const std::byte*>(bytes);
    keepers_[f] = std::move(keeper);
  }
  /// What the data set wrote or showed last.
  const void* at(size_t f) const { return seen_[f]; }

 private:
  std::vector<std::byte> memory_;
  std::vector<size_t> offsets_;
  std::vector<const std::byte*> seen_;
  std::vector<std::shared_ptr<const void>> keepers_;
};

}  // namespace tutti::data
