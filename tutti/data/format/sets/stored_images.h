#pragma once
// StoredImages is the Dataset of all formats with uncompressed images in files or in memory: one
// byte per pixel and value, and a label. Fields: "image" u8 [channels, height, width], "label" u8.

#include <span>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// The number of classes that a set must have, and the configuration key for it, for messages.
struct ClassLimit {
  int64_t count = 0;  ///< 0: the data set's own
  std::string key = "data.classes";
};

/// The classes that labels may name: 0 to names.size() - 1.
struct Classes {
  std::vector<std::string> names;
  std::string key{};  ///< key that limits them; empty: the format's own number
};

/// Returns the data set's own classes, or the requested number of classes, named by their numbers.
Classes limited(std::vector<std::string> own, const ClassLimit& limit);

/// ConfigError for the first label out of range, naming `source` (a file), record, label and key.
void check_labels(std::span<const uint8_t> labels, const Classes& classes,
                  const std::string& source);

class StoredImages final : public Dataset {
 public:
  /// Has as many images as labels; image i is the bytes of a field "image" at first + i * stride of
  /// `pixels`. `source` is the file of the labels, for messages.
  struct Segment {
    FileBytes pixels;
    int64_t first = 0, stride = 0;
    std::vector<uint8_t> labels;
    std::string source;
  };

  /// `shape` is channels, height, width.
  StoredImages(const Shape& shape, Classes classes)
      : fields_({{.name = "image", .element = ElementType::u8, .shape = shape},
                 {.name = "label", .element = ElementType::u8, .class_names = classes.names}}),
        classes_(std::move(classes)) {}

  /// Checks the labels as check_labels() does.
  void append(Segment segment);
  /// Appends all segments of a set of the same shape and classes.
  void append(StoredImages&& other);

  /// Sets the statistics of the images.
  void set_statistics(FieldStatistics statistics) { fields_[0].statistics = std::move(statistics); }

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;

 private:
  std::vector<Field> fields_;
  Classes classes_;
  std::vector<Segment> segments_;
  int64_t size_ = 0;
};

}  // namespace tutti::data
