#include "tutti/data/format/sets/idx.h"

#include <fmt/ranges.h>

#include <limits>
#include <span>

#include "tutti/base/error.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/gzip.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

fs::path plain_or_gz(const fs::path& plain) {
  fs::path packed = plain;
  packed += ".gz";
  return !is_file(plain) && is_file(packed) ? packed : plain;  // opening it reports errors
}

/// Tells by the name whether the file itself is gzip or IDX.
Content idx_or_gzip(const fs::path& path) {
  return path.extension() == ".gz" ? Content::gzip : Content::idx;
}

size_t header_size(int rank) { return static_cast<size_t>(4 + 4 * rank); }

[[noreturn]] void refuse_short_header(const fs::path& path, int rank, int64_t found) {
  throw BadFile(unreadable(
      path, idx_or_gzip(path),
      fmt::format("expected an IDX header of {} bytes, found {} bytes", header_size(rank), found)));
}

/// Returns the extents, and their product in `elements`.
std::vector<int64_t> checked_header(const fs::path& path, std::span<const uint8_t> header, int rank,
                                    int64_t& elements) {
  const uint32_t expected = 0x800u + static_cast<uint32_t>(rank);
  if (const uint32_t magic = big_endian(header.data()); magic != expected) {
    const std::string found =
        fmt::format("expected IDX magic {:#010x} (bytes with {} extents), found {:#010x}", expected,
                    rank, magic);
    if (magic >> 8 == 8)
      throw BadFile(
          "{}: {}: images and labels are exchanged, or this is another file of the set; rename "
          "them",
          path.string(), found);
    if (magic >> 16 == 0 && magic >> 8 > 8 && magic >> 8 < 15)
      throw BadFile(
          "{}: {}: its elements are no bytes; save them as bytes, or as .npy for data.dataset = "
          "\"arrays\"",
          path.string(), found);
    throw BadFile(unreadable(path, idx_or_gzip(path), found));
  }
  std::vector<int64_t> extents;
  elements = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t extent = big_endian(header.data() + 4 + 4 * i);
    extents.push_back(extent);
    const bool side = i > 0;  // a side of an image becomes an int
    if (extent == 0 || (side && extent > std::numeric_limits<int>::max()) ||
        __builtin_mul_overflow(elements, extent, &elements))
      throw BadFile(unreadable(path, idx_or_gzip(path),
                               fmt::format("extent {} of {} is {}", i + 1, rank, extent)));
  }
  return extents;
}

[[noreturn]] void refuse_length(const fs::path& path, const std::vector<int64_t>& extents,
                                int64_t elements, const std::string& found) {
  throw BadFile(unreadable(path, idx_or_gzip(path),
                           fmt::format("expected {} = {} bytes of data after the header, found {}",
                                       fmt::join(extents, " x "), elements, found)));
}

/// `cut` is a command that removes the extra bytes.
[[noreturn]] void refuse_more(const fs::path& path, const std::string& more,
                              const std::string& cut) {
  throw BadFile(
      "{}: {} bytes follow the data that its header announces: it was joined with another file or "
      "written over: take them off with '{}', or fetch it again",
      path.string(), more, cut);
}

IdxArray inflate_idx(const fs::path& path, int rank) {
  GzipReader packed(path);
  std::vector<uint8_t> header(header_size(rank));
  if (const size_t found = packed.read(header); found < header.size())
    refuse_short_header(path, rank, static_cast<int64_t>(found));
  int64_t elements = 0;
  std::vector<int64_t> extents = checked_header(path, header, rank, elements);
  if (elements > packed.most_bytes())
    refuse_length(path, extents, elements,
                  fmt::format("a compressed file that holds less than {}", packed.most_bytes()));
  std::vector<uint8_t> data(static_cast<size_t>(elements));
  if (const size_t found = packed.read(data); found < data.size())
    refuse_length(path, extents, elements, std::to_string(found));
  std::vector<uint8_t> beyond(1 << 16);
  if (const size_t more = packed.read(beyond); more > 0)
    refuse_more(path, fmt::format("{}{}", more < beyond.size() ? "" : "at least ", more),
                fmt::format("gzip -dc OLD | head -c {} > NEW", std::ssize(header) + elements));
  return {std::move(extents), 0, FileBytes::own(std::move(data), path.string())};
}

}  // namespace

IdxArray read_idx(const fs::path& path, int rank) {
  if (path.extension() == ".gz") return inflate_idx(path, rank);
  const FileBytes file = FileBytes::open(path);
  std::vector<uint8_t> header(header_size(rank));
  const int64_t found = file.size() - std::ssize(header);
  if (found < 0) refuse_short_header(path, rank, file.size());
  file.read(0, header);
  int64_t elements = 0;
  std::vector<int64_t> extents = checked_header(path, header, rank, elements);
  if (elements > found) refuse_length(path, extents, elements, std::to_string(found));
  if (elements < found)
    refuse_more(path, std::to_string(found - elements),
                fmt::format("head -c {} OLD > NEW", std::ssize(header) + elements));
  return {std::move(extents), std::ssize(header), file};
}

std::vector<uint8_t> read_idx_labels(const fs::path& path) {
  const IdxArray array = read_idx(path, 1);
  std::vector<uint8_t> labels(static_cast<size_t>(array.elements()));
  array.file.read(array.first, labels);
  return labels;
}

IdxFiles idx_files(const fs::path& directory, bool train) {
  const std::string prefix = train ? "train" : "t10k";
  const auto file = [&](const char* stem, const char* ending) {
    const fs::path dash = plain_or_gz(directory / (prefix + stem + "-" + ending)),
                   dot = plain_or_gz(directory / (prefix + stem + "." + ending));
    return !is_file(dash) && is_file(dot) ? dot : dash;
  };
  return {file("-images", "idx3-ubyte"), file("-labels", "idx1-ubyte")};
}

std::unique_ptr<StoredImages> open_idx(const fs::path& directory, bool train,
                                       const Classes& classes) {
  const IdxFiles files = idx_files(directory, train);
  const IdxArray images = read_idx(files.images, 3);
  std::vector<uint8_t> labels = read_idx_labels(files.labels);
  if (images.extents[0] != std::ssize(labels))
    throw BadFile("{} has {} images but {} has {} labels: the files do not belong together",
                  files.images.string(), images.extents[0], files.labels.string(), labels.size());
  images.file.read_ahead();
  const Shape shape{1, images.extents[1], images.extents[2]};
  auto set = std::make_unique<StoredImages>(shape, classes);
  set->append({.pixels = images.file,
               .first = images.first,
               .stride = shape.elements(),
               .labels = std::move(labels),
               .source = files.labels.string()});
  return set;
}

}  // namespace tutti::data
