#include "tutti/data/format/sets/stored_images.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::data {

Classes limited(std::vector<std::string> own, const ClassLimit& limit) {
  if (limit.count <= 0) return {.names = std::move(own)};
  if (limit.count == std::ssize(own)) return {.names = std::move(own), .key = limit.key};
  Classes classes{.names = {}, .key = limit.key};
  for (int64_t i = 0; i < limit.count; ++i) classes.names.push_back(std::to_string(i));
  return classes;
}

void check_labels(std::span<const uint8_t> labels, const Classes& classes,
                  const std::string& source) {
  const size_t count = classes.names.size();
  const auto bad = std::ranges::find_if(labels, [&](uint8_t label) { return label >= count; });
  if (bad == labels.end()) return;
  const std::string found =
      fmt::format("{}: record {} has label {}", source, bad - labels.begin(), +*bad);
  const int needed = *std::ranges::max_element(labels) + 1;
  if (classes.key.empty())
    throw ConfigError(
        fmt::format("{}, expected 0 to {}: if the file holds more classes, set data.classes = {}; "
                    "otherwise it is damaged or of another format",
                    found, count - 1, needed));
  throw ConfigError(fmt::format(
      "{}, but {} = {} allows 0 to {}: the largest label needs {} = {}, or correct the file", found,
      classes.key, count, count - 1, classes.key, needed));
}

void StoredImages::append(Segment segment) {
  check_labels(segment.labels, classes_, segment.source);
  size_ += std::ssize(segment.labels);
  segments_.push_back(std::move(segment));
}

void StoredImages::append(StoredImages&& other) {
  CHECK(other.fields_[0].shape == fields_[0].shape &&
            other.classes_.names.size() == classes_.names.size(),
        "sets of different images");
  std::move(other.segments_.begin(), other.segments_.end(), std::back_inserter(segments_));
  size_ += std::exchange(other.size_, 0);
  other.segments_.clear();
}

void StoredImages::read(int64_t index, Sample& sample) const {
  CHECK(index >= 0 && index < size_, "image {} of {}", index, size_);
  for (const Segment& segment : segments_) {  // a handful at most
    const int64_t count = std::ssize(segment.labels);
    if (index < count) {
      sample.show(1, &segment.labels[static_cast<size_t>(index)]);
      const int64_t at = segment.first + index * segment.stride;
      if (const uint8_t* pixels = segment.pixels.in_memory(at)) return sample.show(0, pixels);
      // This comes last: a reader that hangs here may be left behind and wake up after the set is
      // gone.
      segment.pixels.read(at, {static_cast<uint8_t*>(sample.own(0)), fields_[0].bytes()});
      return;
    }
    index -= count;
  }
}

}  // namespace tutti::data
