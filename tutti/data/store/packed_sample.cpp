#include "tutti/data/store/packed_sample.h"

#include <algorithm>

namespace tutti::data {

PackedSample::PackedSample(const std::vector<Field>& fields) : fields_(fields) {
  CHECK(fields.size() <= kMostFields, "{} fields", fields.size());
  varies_ = std::ranges::any_of(fields, &Field::coded);
  if (varies_) return;
  for (const Field& field : fields)
    plain_bytes_ += whole_lines(static_cast<int64_t>(field.bytes()));
}

int64_t PackedSample::bytes(const Sample& sample) const {
  if (!varies_) return plain_bytes_;
  int64_t bytes = whole_lines(static_cast<int64_t>(head_bytes() + sample.origin().size()));
  for (size_t f = 0; f < fields_.size(); ++f)
    bytes += whole_lines(fields_[f].coded ? std::ssize(sample.coded_at(f))
                                          : static_cast<int64_t>(fields_[f].bytes()));
  return bytes;
}

void PackedSample::pack(const Sample& sample, std::byte* to) const {
  if (varies_) {
    Head head{};
    for (size_t f = 0; f < fields_.size(); ++f)
      if (fields_[f].coded) head[f] = std::ssize(sample.coded_at(f));
    const std::string& origin = sample.origin();
    head[fields_.size()] = std::ssize(origin);
    std::memcpy(to, head.data(), head_bytes());
    std::memcpy(to + head_bytes(), origin.data(), origin.size());
    to += whole_lines(static_cast<int64_t>(head_bytes() + origin.size()));
  }
  for (size_t f = 0; f < fields_.size(); ++f) {
    const auto coded = fields_[f].coded ? sample.coded_at(f) : std::span<const uint8_t>();
    const size_t bytes = fields_[f].coded ? coded.size() : fields_[f].bytes();
    if (bytes > 0)
      std::memcpy(to, fields_[f].coded ? static_cast<const void*>(coded.data()) : sample.at(f),
                  bytes);
    to += whole_lines(static_cast<int64_t>(bytes));
  }
}

void PackedSample::show(const std::byte* from, const std::shared_ptr<const void>& keeper,
                        Sample& sample) const {
  if (varies_) {
    unpack(
        [&](int64_t at, void* to, size_t bytes) {
          if (bytes > 0) std::memcpy(to, from + at, bytes);
          return true;
        },
        sample);
    return;
  }
  for (size_t f = 0; f < fields_.size(); ++f) {
    sample.show(f, from, keeper);
    from += whole_lines(static_cast<int64_t>(fields_[f].bytes()));
  }
}

}  // namespace tutti::data
