#pragma once
// StoredImages: the Dataset of all formats whose images lie uncompressed in files or in memory, one
// byte a pixel and a label.

#include <span>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/format/file_bytes.h"

namespace tutti::data {

/// How many classes a set shall have, and the configuration key that says so, for messages.
struct ClassLimit {
  int64_t count = 0;  ///< 0: the data set's own
  std::string key = "data.classes";
};

/// The classes that labels may name: 0 to names.size() - 1.
struct Classes {
  std::vector<std::string> names;
  std::string key{};  ///< that limits them; empty: the format's own number
};

/// The data set's own classes, or as many as asked for, which are then named by their numbers.
Classes limited(std::vector<std::string> own, const ClassLimit& limit);

/// ConfigError for the first label out of range, naming `source` (a file), record, label and key.
void check_labels(std::span<const uint8_t> labels, const Classes& classes,
                  const std::string& source);

class StoredImages final : public Dataset {
 public:
  /// As many images as labels; image i is the shape.pixels() bytes in CHW order at
  /// first + i * stride of `pixels`. `source` is the file of the labels, for messages.
  struct Segment {
    FileBytes pixels;
    int64_t first = 0, stride = 0;
    std::vector<uint8_t> labels;
    std::string source;
  };

  StoredImages(const ImageShape& shape, Classes classes)
      : shape_(shape), classes_(std::move(classes)) {}

  /// Checks the labels as check_labels() does.
  void append(Segment segment);
  /// Appends all segments of a set of the same shape and classes.
  void append(StoredImages&& other);

  int64_t size() const override { return size_; }
  ImageShape shape() const override { return shape_; }
  int classes() const override { return static_cast<int>(classes_.names.size()); }
  const std::vector<std::string>& class_names() const override { return classes_.names; }
  void read(int64_t index, uint8_t* pixels, int32_t* label) const override;

 private:
  ImageShape shape_;
  Classes classes_;
  std::vector<Segment> segments_;
  int64_t size_ = 0;
};

}  // namespace tutti::data
