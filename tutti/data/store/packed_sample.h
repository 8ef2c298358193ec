#pragma once
// A PackedSample is a sample as one run of bytes, as a cache keeps it and as one node sends it to
// another.
//
// Fields lie one after the other, each starting on a cache line. If a field is coded, samples
// differ in size, and a head precedes the fields: for each field and for the origin an eight-byte
// length, then the origin.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/data/field.h"

namespace tutti::data {

class PackedSample {
 public:
  static constexpr int64_t kLine = 64;
  static int64_t whole_lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  explicit PackedSample(const std::vector<Field>& fields);

  /// Says whether samples differ in size.
  bool varies() const { return varies_; }
  /// Returns the bytes of every sample, if they do not differ.
  int64_t bytes() const { return plain_bytes_; }
  /// Returns the bytes of this sample, a multiple of kLine.
  int64_t bytes(const Sample& sample) const;
  void pack(const Sample& sample, std::byte* to) const;

  /// Shows fields of known size in place, and copies coded ones. `keeper`: see Sample::show.
  void show(const std::byte* from, const std::shared_ptr<const void>& keeper, Sample& sample) const;
  /// Copies all fields. `copy(from, to, bytes)` copies bytes of the packed sample; if it returns
  /// false, so does unpack().
  template <class Copy>
  bool unpack(Copy copy, Sample& sample) const {
    Head head{};
    int64_t at = 0;
    if (varies_) {
      if (!copy(0, head.data(), head_bytes())) return false;
      std::string origin(static_cast<size_t>(checked(head[fields_.size()])), '\0');
      if (!copy(head_bytes(), origin.data(), origin.size())) return false;
      sample.set_origin(origin);
      at = whole_lines(static_cast<int64_t>(head_bytes() + origin.size()));
    }
    for (size_t f = 0; f < fields_.size(); ++f) {
      const auto bytes = static_cast<size_t>(size_of_field(f, head));
      void* to = fields_[f].coded ? sample.own(f, bytes) : sample.own(f);
      if (!copy(at, to, bytes)) return false;
      at += whole_lines(static_cast<int64_t>(bytes));
    }
    return true;
  }

 private:
  static constexpr size_t kMostFields = 63;
  using Head = std::array<int64_t, kMostFields + 1>;
  size_t head_bytes() const { return (fields_.size() + 1) * sizeof(int64_t); }
  static int64_t checked(int64_t bytes) {
    CHECK(bytes >= 0 && bytes <= int64_t{1} << 40, "a packed sample's part of {} bytes", bytes);
    return bytes;
  }
  int64_t size_of_field(size_t f, const Head& head) const {
    return fields_[f].coded ? checked(head[f]) : static_cast<int64_t>(fields_[f].bytes());
  }

  const std::vector<Field>& fields_;  // fields of a data set that outlives this
  bool varies_ = false;
  int64_t plain_bytes_ = 0;
};

}  // namespace tutti::data
