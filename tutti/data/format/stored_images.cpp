#include "tutti/data/format/stored_images.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::data {

void StoredImages::append(const Segment& segment, std::vector<FileBytes> bytes) {
  for (int64_t i = 0; i < segment.count; ++i)
    if (const int label = segment.labels[i * segment.label_stride]; label >= classes())
      throw IoError(
          fmt::format("{}: record {} has label {}, expected 0 to {}: the file is corrupted or of "
                      "another format; fetch it again",
                      segment.source, i, label, classes() - 1));
  segments_.push_back(segment);
  std::move(bytes.begin(), bytes.end(), std::back_inserter(bytes_));
  size_ += segment.count;
}

void StoredImages::append(const Segment& segment, FileBytes bytes) {
  std::vector<FileBytes> list;
  list.push_back(std::move(bytes));
  append(segment, std::move(list));
}

void StoredImages::append(StoredImages&& other) {
  CHECK(other.shape_ == shape_ && other.classes() == classes(), "sets of different images");
  std::move(other.segments_.begin(), other.segments_.end(), std::back_inserter(segments_));
  std::move(other.bytes_.begin(), other.bytes_.end(), std::back_inserter(bytes_));
  size_ += std::exchange(other.size_, 0);
  other.segments_.clear();
}

void StoredImages::read(int64_t index, uint8_t* pixels, int32_t* label) const {
  CHECK(index >= 0 && index < size_, "image {} of {}", index, size_);
  for (const Segment& segment : segments_) {  // a handful at most
    if (index < segment.count) {
      std::memcpy(pixels, segment.pixels + index * segment.pixel_stride,
                  static_cast<size_t>(shape_.pixels()));
      *label = segment.labels[index * segment.label_stride];
      return;
    }
    index -= segment.count;
  }
}

}  // namespace tutti::data
