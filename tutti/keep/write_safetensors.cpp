#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tutti/base/json.h"
#include "tutti/keep/safetensors.h"

namespace tutti::keep {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");

using Type = SafetensorsFile::Type;

constexpr size_t kAlignment = 64;  // the first tensor's; the header is padded with spaces

Type stored_type(DType type) {
  switch (type) {
    case DType::f32: return Type::f32;
    case DType::bf16: return Type::bf16;
    case DType::i32: return Type::i32;
    case DType::u8: return Type::u8;
  }
  return Type::u8;
}

/// Returns the header, padded so that the data begin at a multiple of kAlignment. It is written as
/// text: a Json object would look through all names for each.
std::string header_of(std::span<const TensorRef> tensors, const TensorMetadata& metadata) {
  std::string text;
  if (!metadata.empty()) text = "\"__metadata__\":" + print_json(metadata);
  uint64_t offset = 0;
  for (const TensorRef& t : tensors) {
    text +=
        fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                    text.empty() ? "" : ",", print_json(t.name), name_of(stored_type(t.desc.dtype)),
                    fmt::join(t.desc.shape, ","), offset, offset + t.desc.bytes());
    offset += t.desc.bytes();
  }
  text = "{" + text + "}";
  text.resize((text.size() + 8 + kAlignment - 1) / kAlignment * kAlignment - 8, ' ');
  return text;
}

}  // namespace

void sort_for_file(std::vector<TensorRef>& tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const TensorRef& t) { return size_of(t.desc.dtype); });
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const TensorRef> tensors,
                                     const TensorMetadata& metadata)
    : header_(header_of(tensors, metadata)), file_(path) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& t = tensors[i];
    CHECK(t.desc.layout.is_plain() &&
              (i == 0 || size_of(t.desc.dtype) <= size_of(tensors[i - 1].desc.dtype)),
          "{}: {}", t.name, t.desc.to_string());
    CHECK(t.name != "__metadata__" && names.insert(t.name).second, "tensor '{}' is named twice",
          t.name);
    missing_ += t.desc.bytes();
  }
  if (header_.size() > kSafetensorsHeaderLimit)
    throw IoError(fmt::format("{}: {} tensors need a header of {} bytes; the format allows {}",
                              path.string(), tensors.size(), header_.size(),
                              kSafetensorsHeaderLimit));
  const uint64_t header_bytes = header_.size();
  file_.write(std::as_bytes(std::span(&header_bytes, 1)));
  file_.write(header_);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= missing_, "{} bytes more than the tensors have", bytes.size() - missing_);
  file_.write(bytes);
  missing_ -= bytes.size();
}

void SafetensorsWriter::replace(const std::string& key, std::string_view value) {
  const std::string before = print_json(key) + ":\"";
  const size_t at = header_.find(before);
  CHECK(at != std::string::npos && header_[at + before.size() + value.size()] == '"', "{} = {}",
        key, value);
  file_.overwrite(sizeof(uint64_t) + at + before.size(), value);
}

FileDigest SafetensorsWriter::close() {
  CHECK(missing_ == 0, "{} bytes of tensors are missing", missing_);
  return file_.close();
}

FileDigest write_safetensors(const std::filesystem::path& path, std::vector<TensorRef> tensors,
                             const TensorMetadata& metadata) {
  sort_for_file(tensors);
  SafetensorsWriter file(path, tensors, metadata);
  for (const TensorRef& tensor : tensors)
    give_bytes(tensor, [&](std::span<const std::byte> piece) { file.write(piece); });
  return file.close();
}

}  // namespace tutti::keep
