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
  std::vector<int64_t> rows{};  ///< of whole numbers: they are rows of tables, element i one below
                                ///< rows[i]; empty: they are none
  std::vector<int64_t> bags{};  ///< of these: how many elements, one after the other, name rows of
                                ///< the same table; empty: each has a table of its own. -1: no row
  /// Each sample is an image file's bytes, JPEG or PNG of any size: neither shape nor elements are
  /// known before a step has decoded it (`resized-crop`). Statistics are those of RGB.
  bool coded = false;
  std::string unit{};  ///< of the values, as the files' attribute `units` has it; empty: not known

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
    std::byte* at = reinterpret_cast<std::byte*>(memory_.data()) + offsets_[f];
    seen_[f] = at;
    return at;
  }
  /// The same for `bytes` of a coded field, as many as this sample has.
  void* own(size_t f, size_t bytes) {
    if (coded_.size() <= f) coded_.resize(f + 1);
    coded_[f].resize(bytes);
    seen_[f] = coded_[f].data();
    return coded_[f].data();
  }
  /// Of a coded field, its bytes as the data set wrote them last.
  std::span<const uint8_t> coded_at(size_t f) const {
    return {reinterpret_cast<const uint8_t*>(coded_[f].data()), coded_[f].size()};
  }
  /// Where the sample comes from, for messages about what only decoding finds: a file.
  void set_origin(std::string_view origin) { origin_ = origin; }
  const std::string& origin() const { return origin_; }
  /// Instead of writing: the bytes lie in memory that stays while the data set is open, or while
  /// `keeper` does, which the sample holds until the field is shown again.
  void show(size_t f, const void* bytes, std::shared_ptr<const void> keeper = {}) {
    seen_[f] = static_cast<const std::byte*>(bytes);
    keepers_[f] = std::move(keeper);
  }
  /// What the data set wrote or showed last.
  const void* at(size_t f) const { return seen_[f]; }

 private:
  /// Large fields begin with a page, as files do in the system's cache: a copy to a place that lies
  /// a little behind its origin within a page waits for its own writes, and takes twice as long.
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> memory_;
  std::vector<size_t> offsets_;
  std::vector<const std::byte*> seen_;
  std::vector<std::shared_ptr<const void>> keepers_;
  std::vector<std::vector<std::byte>> coded_;  // of coded fields; others have none
  std::string origin_;
};

}  // namespace tutti::data
