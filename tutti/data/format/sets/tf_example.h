#pragma once
// Reads and writes tf.Example, the Protocol Buffers message in most TFRecord files:
//   Example   { 1: Features }
//   Features  { 1: repeated { 1: name, 2: Feature } }
//   Feature   { 1: BytesList | 2: FloatList | 3: Int64List }     each { 1: repeated value }
// floats and integers packed or not. CosmoFlow: x, one text of 128 x 128 x 128 x 4 little-endian
// 16-bit numbers, and y, four floats.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

struct TfFeature {
  enum class Kind : uint8_t { none, bytes, floats, integers };

  std::string name{};
  Kind kind = Kind::none;  ///< none: no value, as TensorFlow writes missing ones
  std::vector<std::span<const uint8_t>> bytes{};  ///< parts of the record, which must outlive them
  std::vector<float> floats{};
  std::vector<int64_t> integers{};

  size_t values() const { return bytes.size() + floats.size() + integers.size(); }
};

/// Returns the features of a record in order; if several have one name, the last; unknown fields
/// are skipped. BadFile that begins with `what` (file and record).
std::vector<TfFeature> parse_example(std::span<const uint8_t> record, std::string_view what);

/// Finds the feature of that name, kind and number of values; count -1: any. BadFile that begins
/// with `what` and says what the record has.
const TfFeature& find_feature(const std::vector<TfFeature>& features, std::string_view name,
                              TfFeature::Kind kind, int64_t count, std::string_view what);

/// Returns the record with these features (lists packed), as TensorFlow reads it.
std::vector<uint8_t> example_record(std::span<const TfFeature> features);

}  // namespace tutti::data
