#pragma once
// StoredImages: the Dataset of all formats whose images lie uncompressed in memory or in mapped
// files.

#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/format/file_bytes.h"

namespace tutti::data {

class StoredImages final : public Dataset {
 public:
  /// `count` images at `pixels`, each shape.pixels() bytes in CHW order, `pixel_stride` bytes
  /// apart; labels likewise, one byte each. `source` is the file's name, for messages.
  struct Segment {
    const uint8_t* pixels = nullptr;
    int64_t pixel_stride = 0;
    const uint8_t* labels = nullptr;
    int64_t label_stride = 0;
    int64_t count = 0;
    std::string source;
  };

  StoredImages(const ImageShape& shape, std::vector<std::string> class_names)
      : shape_(shape), class_names_(std::move(class_names)) {}

  /// Appends a segment that points into `bytes` (one or more files, which this then owns). IoError
  /// if a label is out of range, naming file, record and label.
  void append(const Segment& segment, std::vector<FileBytes> bytes);
  void append(const Segment& segment, FileBytes bytes);
  /// Appends all segments of a set of the same shape and classes.
  void append(StoredImages&& other);

  int64_t size() const override { return size_; }
  ImageShape shape() const override { return shape_; }
  int classes() const override { return static_cast<int>(class_names_.size()); }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  void read(int64_t index, uint8_t* pixels, int32_t* label) const override;

 private:
  ImageShape shape_;
  std::vector<std::string> class_names_;
  std::vector<Segment> segments_;
  std::vector<FileBytes> bytes_;
  int64_t size_ = 0;
};

}  // namespace tutti::data
