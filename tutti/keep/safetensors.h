#pragma once
// The safetensors format, which Python readers of weights understand: 8 bytes little-endian
// length of the header, the header as JSON {"name": {"dtype", "shape", "data_offsets": [begin,
// end]}, "__metadata__": {"key": "text"}}, then the tensors' bytes, little-endian, row-major,
// without gaps. Offsets count from the end of the header. Large models are stored in several such
// files, with an index that maps tensors to files: JSON {"weight_map": {"name": "FILE beside it"}}.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/keep/durable_file.h"
#include "tutti/keep/named_tensor.h"

namespace tutti::keep {

using TensorMetadata = std::map<std::string, std::string>;

/// The format's reference reader refuses longer headers. In bytes.
constexpr uint64_t kSafetensorsHeaderLimit = 100'000'000;

/// Sorts tensors into the order of their content in a file: wide types first, so that every tensor
/// stays aligned to its element.
void sort_for_file(std::vector<TensorRef>& tensors);

/// Writes a new file from front to back: the constructor writes the header, and write() the content
/// of all tensors, one after another, in any pieces.
class SafetensorsWriter {
 public:
  /// Only names and shapes of the tensors are read. Names must differ; layouts must be plain; the
  /// order is that of sort_for_file().
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                    const TensorMetadata& metadata);
  void write(std::span<const std::byte> bytes);
  /// Replaces a value of the metadata by another one of the same length, which may depend on the
  /// content. The digest that close() returns is the one of the former value.
  void replace(const std::string& key, std::string_view value);
  /// Waits for the disk. All of the content must have been written.
  FileDigest close();

 private:
  std::string header_;
  DurableFile file_;
  uint64_t missing_ = 0;  // bytes of content
};

/// Writes `tensors` to a new file and waits for the disk. It holds at most one made tensor
/// (TensorRef::make) at a time.
FileDigest write_safetensors(const std::filesystem::path& path, std::vector<TensorRef> tensors,
                             const TensorMetadata& metadata = {});

/// An open file, or all files of an index, whose headers have been checked completely: every tensor
/// has a known dtype, lies inside its file, has the size that its shape implies, and overlaps no
/// other. Throws IoError naming file and tensor; for a file in another format it names the format
/// and a remedy. Reading is safe from several threads.
class SafetensorsFile {
 public:
  enum class Type : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
  struct Entry {
    std::string name;
    Type type = Type::f32;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;  ///< in bytes from the end of the header
    size_t file = 0;              ///< index of its file, if there are several
  };

  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// Lists the tensors in the order of their bytes, file after file.
  const std::vector<Entry>& entries() const { return entries_; }
  const TensorMetadata& metadata() const { return metadata_; }
  const Entry* find(std::string_view name) const;  ///< null if there is none

  std::vector<std::byte> bytes(const Entry& entry) const;
  /// Fills `part` with the tensor's bytes from byte `from` on; the tensor must have that many.
  void read_part(const Entry& entry, uint64_t from, std::span<std::byte> part) const;
  /// Returns any floating-point or integer tensor as f32, rounded to nearest.
  std::vector<float> read_f32(const Entry& entry) const;
  /// Returns a tensor whose type Tutti has (f32, bf16, i32, u8); throws IoError for any other.
  NamedTensor read(const Entry& entry) const;
  /// Returns any tensor with at most Shape::kMaxRank dimensions, converted to f32.
  NamedTensor read_as_f32(const Entry& entry) const;

 private:
  Shape shape_of(const Entry& entry) const;
  [[noreturn]] void fail(const Entry& entry, const std::string& what) const;

  struct Part {
    std::unique_ptr<InputFile> file;
    uint64_t data_begin = 0;
  };
  void add_part(const std::filesystem::path& path);
  void add_parts_of_index();

  std::filesystem::path path_;
  std::vector<Part> parts_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  ///< each name's index in entries_
  TensorMetadata metadata_;
};

std::string_view name_of(SafetensorsFile::Type type);  ///< the name in the file: "F32"

}  // namespace tutti::keep
