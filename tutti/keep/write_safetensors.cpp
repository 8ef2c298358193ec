#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tutti/base/json.h"
#include "tutti/keep/safetensors.h"

namespace tutti {
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

/// Header text, padded so that the data begin at a multiple of kAlignment. Tensors stand in the
/// order of their data. Written as text: a Json object would look through all names for each.
std::string header_of(std::span<const TensorRef> tensors, const TensorMetadata& metadata,
                      const std::vector<size_t>& order) {
  std::string text;
  if (!metadata.empty()) text = "\"__metadata__\":" + print_json(metadata);
  uint64_t offset = 0;
  for (const size_t i : order) {
    const TensorRef& t = tensors[i];
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

FileDigest write_safetensors(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                             const TensorMetadata& metadata) {
  std::set<std::string_view> names;
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& t = tensors[i];
    CHECK(t.desc.layout.is_plain() && (t.make || t.bytes.size() == t.desc.bytes()),
          "{}: {} with {} bytes", t.name, t.desc.to_string(), t.bytes.size());
    CHECK(t.name != "__metadata__" && names.insert(t.name).second, "tensor '{}' is named twice",
          t.name);
    order[i] = i;
  }
  // Wide types first, so that every tensor stays aligned to its element.
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t i) { return size_of(tensors[i].desc.dtype); });

  const std::string header = header_of(tensors, metadata, order);
  if (header.size() > kSafetensorsHeaderLimit)
    throw IoError(fmt::format("{}: {} tensors need a header of {} bytes; the format allows {}",
                              path.string(), tensors.size(), header.size(),
                              kSafetensorsHeaderLimit));
  DurableFile file(path);
  const uint64_t header_bytes = header.size();
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(header);
  std::vector<std::byte> made;
  for (const size_t i : order) {
    const TensorRef& tensor = tensors[i];
    if (tensor.make) {
      made.resize(tensor.desc.bytes());
      tensor.make(made);
    }
    file.write(tensor.make ? std::span<const std::byte>(made) : tensor.bytes);
  }
  return file.close();
}

}  // namespace tutti
