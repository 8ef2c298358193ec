#pragma once
// Field: one named array of a sample. Images, labels, masks, volumes and targets are fields alike.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/tensor/shape.h"

namespace tutti::data {

/// The type of a field's elements as a file stores them, in the machine's byte order.
enum class Element : uint8_t { u8, i8, u16, i16, u32, i32, i64, f32, f64 };

constexpr size_t size_of(Element element) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 8, 4, 8};
  return kBytes[static_cast<size_t>(element)];
}
constexpr std::string_view name_of(Element element) {
  constexpr std::string_view kNames[] = {"u8",  "i8",  "u16", "i16", "u32",
                                         "i32", "i64", "f32", "f64"};
  return kNames[static_cast<size_t>(element)];
}
constexpr bool is_integer(Element element) { return element < Element::f32; }

/// What is known of a field's values over the whole training set, one number a channel (the first
/// axis, after permutation) or one for all. Empty: not known. Of bytes (u8): of the values divided
/// by 255.
struct FieldStatistics {
  std::vector<float> mean{}, deviation{};
  std::vector<float> least{}, greatest{};
};

struct Field {
  std::string name;  ///< "image", "label"
  Element element = Element::u8;
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
  /// Instead of writing: the bytes lie in memory that stays while the data set is open.
  void show(size_t f, const void* bytes) { seen_[f] = static_cast<const std::byte*>(bytes); }
  /// What the data set wrote or showed last.
  const void* at(size_t f) const { return seen_[f]; }

 private:
  std::vector<std::byte> memory_;
  std::vector<size_t> offsets_;
  std::vector<const std::byte*> seen_;
};

}  // namespace tutti::data
