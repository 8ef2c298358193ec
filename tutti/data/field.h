#pragma once
// A Field is one named array of a sample. Images, labels, masks, volumes and targets are all
// fields.

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

/// Statistics of a field's values over the whole training set, one number per channel (the first
/// axis, after permutation) or one for all. Empty: not known. For bytes (u8) they are statistics of
/// the values divided by 255.
struct FieldStatistics {
  std::vector<float> mean{}, deviation{};
  std::vector<float> least{}, greatest{};
};

struct Field {
  std::string name;  ///< "image", "label"
  ElementType element = ElementType::u8;
  Shape shape{};                           ///< shape of one sample, rows last; rank 0: one number
  std::vector<std::string> class_names{};  ///< names of classes 0, 1, ...; empty: no class numbers
  FieldStatistics statistics{};
  std::vector<int64_t> rows{};  ///< for whole numbers that name rows of tables: element i is below
                                ///< rows[i]; empty: values name no rows
  std::vector<int64_t> bags{};  ///< for such rows: how many consecutive elements name rows of each
                                ///< table; empty: each element has a table of its own. Element -1:
                                ///< no row
  /// Each sample is the bytes of an image file, JPEG or PNG, of any size: shape and elements are
  /// unknown until a step has decoded it (`resized-crop`). Statistics are those of RGB values.
  bool coded = false;
  std::string unit{};  ///< unit of the values, from the files' attribute `units`; empty: unknown

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(element); }
  /// Returns text such as "u8 image 3x32x32".
  std::string to_string() const;
};

/// Memory for one sample of a data set, owned by a reader thread.
class Sample {
 public:
  Sample() = default;
  explicit Sample(std::span<const Field> fields);

  /// Returns the place where a data set writes the field.bytes() bytes of field `f`.
  void* own(size_t f) {
    std::byte* at = reinterpret_cast<std::byte*>(memory_.data()) + offsets_[f];
    seen_[f] = at;
    return at;
  }
  /// Does the same for a coded field, whose length in this sample is `bytes`.
  void* own(size_t f, size_t bytes) {
    if (coded_.size() <= f) coded_.resize(f + 1);
    coded_[f].resize(bytes);
    seen_[f] = coded_[f].data();
    return coded_[f].data();
  }
  /// Returns the bytes of a coded field that the data set wrote last.
  std::span<const uint8_t> coded_at(size_t f) const {
    return {reinterpret_cast<const uint8_t*>(coded_[f].data()), coded_[f].size()};
  }
  /// Names the file that the sample comes from, for errors that only decoding finds.
  void set_origin(std::string_view origin) { origin_ = origin; }
  const std::string& origin() const { return origin_; }
  /// Shows existing bytes instead of writing them. They stay valid while the data set is open, or
  /// while `keeper` lives, which the sample holds until the field is shown again.
  void show(size_t f, const void* bytes, std::shared_ptr<const void> keeper = {}) {
    seen_[f] = static_cast<const std::byte*>(bytes);
    keepers_[f] = std::move(keeper);
  }
  /// Returns the bytes that the data set wrote or showed last.
  const void* at(size_t f) const { return seen_[f]; }

 private:
  /// Large fields begin at a page boundary, as files do in the system's cache: a copy to an address
  /// slightly behind its source within a page waits for its own writes and takes twice as long.
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> memory_;
  std::vector<size_t> offsets_;
  std::vector<const std::byte*> seen_;
  std::vector<std::shared_ptr<const void>> keepers_;
  std::vector<std::vector<std::byte>> coded_;  // bytes of coded fields; others have none
  std::string origin_;
};

}  // namespace tutti::data
