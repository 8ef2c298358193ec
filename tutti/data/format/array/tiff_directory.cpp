#include "tutti/data/format/array/tiff_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "tutti/data/file/first_bytes.h"
#include "tutti/data/format/array/tiff_codecs.h"

namespace tutti::data {
namespace {

enum TiffTag : uint16_t {
  kSubfileType = 254,
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kFillOrder = 266,
  kImageDescription = 270,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kPredictor = 317,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kSubIfds = 330,
  kSampleFormat = 339,
  kImageDepth = 32997,
  kTileDepth = 32998,
  kMetaMorphPlanes = 33629,
  kGdalNoData = 42113
};

/// Most bytes of a text to read: OME's descriptions of large sets have megabytes.
constexpr int64_t kMostDescription = int64_t{16} << 20;

class TiffReader {
 public:
  explicit TiffReader(const FileBytes& file) : file_(file) {}

  TiffDirectories read() {
    read_header();
    for (int64_t at = first_; at != 0;) {
      found_.pages.emplace_back();
      at = read_page(at, found_.pages.back());
    }
    if (found_.pages.empty()) refuse(4, "a page", "none");
    for (const TiffPage& page : found_.pages) {
      std::vector<TiffPage>& below = found_.below.emplace_back();
      for (const int64_t at : page.below) read_page(at, below.emplace_back());
    }
    found_.big_endian = big_endian_;
    return std::move(found_);
  }

 private:
  /// The place of a tag's values; a few bytes are kept as they lie in the directory.
  struct Entry {
    int type = 0;
    int64_t count = 0, first = 0;
    std::array<uint8_t, 8> inside{};
    bool is_inside = false;
  };
  using Entries = std::map<uint16_t, Entry>;

  [[noreturn]] void refuse(int64_t at, std::string_view expected, std::string_view found) const {
    throw BadFile(unreadable(
        file_, Content::tiff,
        fmt::format("expected {} at byte {} of a TIFF file, found {}", expected, at, found)));
  }

  uint64_t number_in(const uint8_t* raw, int bytes) const {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint64_t{raw[i]} << 8 * (big_endian_ ? bytes - 1 - i : i);
    return value;
  }

  /// Returns bytes from the block that was read last, or reads another one.
  const uint8_t* raw(int64_t at, int64_t bytes) {
    constexpr int64_t kBlock = 4096;
    if (at < 0 || at > file_.size() - bytes)
      refuse(at, fmt::format("{} bytes", bytes), fmt::format("the end at {}", file_.size()));
    if (at < block_at_ || at + bytes > block_at_ + std::ssize(block_)) {
      block_.resize(static_cast<size_t>(std::min(std::max(kBlock, bytes), file_.size() - at)));
      file_.read(at, block_);
      block_at_ = at;
    }
    return block_.data() + (at - block_at_);
  }
  uint64_t number(int64_t at, int bytes) { return number_in(raw(at, bytes), bytes); }
  int64_t place(int64_t at) {
    const uint64_t value = number(at, big_ ? 8 : 4);
    if (value > static_cast<uint64_t>(file_.size()))
      refuse(at, "a place in the file", std::to_string(value));
    return static_cast<int64_t>(value);
  }

  void read_header() {
    big_endian_ = *raw(0, 1) == 'M';
    big_ = number(2, 2) == 43;
    if (big_ && (number(4, 2) != 8 || number(6, 2) != 0))
      refuse(4, "places of 8 bytes", std::to_string(number(4, 2)));
    first_ = place(big_ ? 8 : 4);
  }

  /// Returns the place of the next page; 0: none.
  int64_t read_page(int64_t at, TiffPage& page) {
    if (!seen_.insert(at).second) refuse(at, "a page of its own", "one that was there before");
    Entries entries;
    const int64_t next = read_entries(at, entries);
    describe(entries, page);
    return next;
  }

  int64_t read_entries(int64_t at, Entries& entries) {
    const auto count = static_cast<int64_t>(number(at, big_ ? 8 : 2));
    const int64_t entry_bytes = big_ ? 20 : 12, value_bytes = big_ ? 8 : 4;
    at += big_ ? 8 : 2;
    entries_ += std::max<int64_t>(count, 0);
    if (count < 1 || count > (file_.size() - at) / entry_bytes || entries_ > file_.size())
      refuse(at, "entries within the file", std::to_string(count));
    for (int64_t i = 0; i < count; ++i, at += entry_bytes) {
      Entry entry{.type = static_cast<int>(number(at + 2, 2))};
      const uint64_t values = number(at + 4, big_ ? 8 : 4);
      const int64_t bytes = size_of_type(entry.type);
      if (bytes == 0) continue;  // a type that is not needed
      if (values > static_cast<uint64_t>(file_.size()) / static_cast<uint64_t>(bytes))
        refuse(at, "values within the file", std::to_string(values));
      entry.count = static_cast<int64_t>(values);
      const int64_t inside = at + (big_ ? 12 : 8);
      entry.is_inside = entry.count * bytes <= value_bytes;
      if (entry.is_inside)
        std::copy_n(raw(inside, value_bytes), value_bytes, entry.inside.begin());
      else
        entry.first = place(inside);
      if (entry.count * bytes > file_.size() - entry.first)
        refuse(at, "values within the file", std::to_string(entry.first));
      entries[static_cast<uint16_t>(number(at, 2))] = entry;
    }
    return place(at);
  }

  /// Returns the size of texts, whole numbers, places, and pairs of numbers, which are only
  /// counted; 0 for others.
  static int64_t size_of_type(int type) {
    switch (type) {
      case 1:
      case 2: return 1;
      case 3: return 2;
      case 4:
      case 13: return 4;
      case 5:
      case 16:
      case 18: return 8;
      default: return 0;
    }
  }

  uint64_t value(const Entries& entries, TiffTag tag, int64_t index, uint64_t otherwise) {
    const auto found = entries.find(tag);
    if (found == entries.end() || index >= found->second.count) return otherwise;
    const Entry& entry = found->second;
    const auto bytes = static_cast<int>(size_of_type(entry.type));
    return entry.is_inside ? number_in(entry.inside.data() + index * bytes, bytes)
                           : number(entry.first + index * bytes, bytes);
  }

  /// Reads the first `count` values at once, with UINT64_MAX for those that the tag lacks.
  std::vector<uint64_t> values(const Entries& entries, TiffTag tag, int64_t count) {
    std::vector<uint64_t> all(static_cast<size_t>(count), UINT64_MAX);
    const auto found = entries.find(tag);
    if (found == entries.end()) return all;
    const Entry& entry = found->second;
    const auto bytes = static_cast<int>(size_of_type(entry.type));
    const int64_t there = std::min(count, entry.count);
    std::vector<uint8_t> table;
    if (!entry.is_inside) {
      table.resize(static_cast<size_t>(there * bytes));
      file_.read(entry.first, table);
    }
    const uint8_t* at = entry.is_inside ? entry.inside.data() : table.data();
    for (int64_t i = 0; i < there; ++i)
      all[static_cast<size_t>(i)] = number_in(at + i * bytes, bytes);
    return all;
  }

  /// Extents beyond any file's capacity become a problem later: this limit avoids overflow.
  int64_t extent(const Entries& entries, TiffTag tag, const char* of, uint64_t otherwise = 0) {
    const uint64_t found = value(entries, tag, 0, otherwise);
    if (found < 1 || found > uint64_t{1} << 31)
      throw BadFile(unreadable(file_, Content::tiff, fmt::format("{} is {}", of, found)));
    return static_cast<int64_t>(found);
  }

  static std::optional<ElementType> element_of(uint64_t format, uint64_t bits) {
    const char* const kind = format == 1 ? "u" : format == 2 ? "i" : format == 3 ? "f" : "none";
    ElementType type{};
    if (!element_type_of(fmt::format("{}{}", kind, bits), type)) return std::nullopt;
    return type;
  }

  void describe(const Entries& entries, TiffPage& page) {
    const auto problem = [&](std::string what) {
      if (page.problem.empty()) page.problem = std::move(what);
    };
    page.reduced = (value(entries, kSubfileType, 0, 0) & 1) != 0;
    page.strips = !entries.contains(kTileOffsets);
    if (const auto planes = entries.find(kMetaMorphPlanes); planes != entries.end())
      page.planes_declared = std::max<int64_t>(planes->second.count, 1);
    if (&page == found_.pages.data()) read_description(entries, page);
    if (const auto below = entries.find(kSubIfds); below != entries.end())
      for (const uint64_t at : values(entries, kSubIfds, below->second.count))
        page.below.push_back(static_cast<int64_t>(std::min<uint64_t>(at, INT64_MAX)));
    describe_samples(entries, page, problem);
    describe_packing(entries, page, problem);
    page.described = page.problem.empty();
    if (page.described) place_parts(entries, page, problem);
  }

  void read_description(const Entries& entries, TiffPage& page) {
    const auto found = entries.find(kImageDescription);
    if (found == entries.end() || found->second.type != 2) return;
    const Entry& entry = found->second;
    const int64_t bytes = std::min(entry.count, kMostDescription);
    page.description.resize(static_cast<size_t>(bytes));
    if (entry.is_inside)
      std::copy_n(entry.inside.begin(), bytes, page.description.begin());
    else
      file_.read(entry.first,
                 {reinterpret_cast<uint8_t*>(page.description.data()), page.description.size()});
    page.description.resize(std::min(page.description.find('\0'), page.description.size()));
  }

  template <class Problem>
  void describe_samples(const Entries& entries, TiffPage& page, const Problem& problem) {
    const int64_t height = extent(entries, kImageLength, "the height of a page"),
                  width = extent(entries, kImageWidth, "the width of a page"),
                  depth = extent(entries, kImageDepth, "the depth of a page", 1);
    const uint64_t samples = value(entries, kSamplesPerPixel, 0, 1),
                   bits = value(entries, kBitsPerSample, 0, 1),
                   format = value(entries, kSampleFormat, 0, 1);
    if (samples < 1 || samples > 65535)
      return problem(fmt::format("a pixel has {} samples", samples));
    page.pixel_samples = static_cast<int64_t>(samples);
    const bool planes = samples > 1 && value(entries, kPlanarConfiguration, 0, 1) == 2;
    const auto element = element_of(format, bits);
    if (!element)
      problem(fmt::format("samples of {} bits and format {} are not known here", bits, format));
    page.element = element.value_or(ElementType::u8);
    for (int64_t i = 1; i < static_cast<int64_t>(samples); ++i)
      if (value(entries, kBitsPerSample, i, bits) != bits ||
          value(entries, kSampleFormat, i, format) != format)
        problem("samples of a pixel differ in size or kind");
    if (value(entries, kFillOrder, 0, 1) != 1) problem("its bits are in reverse order");
    const int64_t part_depth =
        page.strips ? 1 : extent(entries, kTileDepth, "the depth of a tile", 1);
    const auto axis = [&](int64_t extent, int64_t part) {
      page.shape.push_back(extent);
      page.part.push_back(part);
    };
    if (planes) axis(page.pixel_samples, 1);
    if (depth > 1 || part_depth > 1) axis(depth, part_depth);
    page.rows = page.shape.size();
    if (page.strips) {
      const auto rows = static_cast<int64_t>(std::min<uint64_t>(
          value(entries, kRowsPerStrip, 0, UINT32_MAX), static_cast<uint64_t>(height)));
      if (rows < 1) problem("its strips have no rows");
      axis(height, std::max<int64_t>(rows, 1));
      axis(width, width);
    } else {
      axis(height, extent(entries, kTileLength, "the height of a tile"));
      axis(width, extent(entries, kTileWidth, "the width of a tile"));
    }
    if (samples > 1 && !planes) {
      page.samples = page.pixel_samples;
      axis(page.samples, page.samples);
    }
  }

  template <class Problem>
  void describe_packing(const Entries& entries, TiffPage& page, const Problem& problem) {
    using Filter = ChunkTable::Filter;
    const uint64_t compression = value(entries, kCompression, 0, 1);
    const uint64_t predictor = value(entries, kPredictor, 0, 1);
    const bool floats = page.element == ElementType::f16 || page.element == ElementType::f32 ||
                        page.element == ElementType::f64;
    // A predictor has no meaning without compression.
    if (compression != 1) {
      if (predictor == 2)
        page.filters.push_back(Filter::difference);
      else if (predictor == 3 && floats)
        page.filters.push_back(Filter::float_difference);
      else if (predictor != 1)
        problem(fmt::format("predictor {} is not known here", predictor));
    }
    switch (compression) {
      case 1: break;
      case 5: page.filters.push_back(Filter::lzw); break;
      case 8:
      case 32946: page.filters.push_back(Filter::deflate); break;
      case 32773: page.filters.push_back(Filter::packbits); break;
      default:
        problem(fmt::format("compression {} is not known here: LZW, deflate and PackBits are",
                            compression));
    }
  }

  /// Tables are not read for more than the file can hold.
  template <class Problem>
  void place_parts(const Entries& entries, TiffPage& page, const Problem& problem) {
    const int64_t most = most_unpacked(file_.size(), page.filters);
    ArrayInfo whole{.name = {}, .type = page.element, .shape = page.shape};
    check_announced(whole, most);
    if (!whole.problem.empty()) return problem(whole.problem);
    if (page.part_bytes(page.part[page.rows]) > most)
      return problem("its tiles are larger than the file can hold: it is corrupted");
    int64_t parts = 1, in_plane = 0;
    for (size_t d = 0; d < page.shape.size(); ++d) {
      const int64_t along = (page.shape[d] - 1) / page.part[d] + 1;
      if (d == page.rows) in_plane = along;
      parts *= along;
    }
    // Each part takes bytes of the tables in the file, unless pages share theirs.
    if ((parts_ += parts) > file_.size()) refuse(first_, "at most a part a byte", "more");
    const auto firsts = values(entries, page.strips ? kStripOffsets : kTileOffsets, parts),
               sizes = values(entries, page.strips ? kStripByteCounts : kTileByteCounts, parts);
    const auto limited = [](uint64_t x) {
      return static_cast<int64_t>(std::min<uint64_t>(x, INT64_MAX));
    };
    for (int64_t i = 0; i < parts; ++i) {
      const auto at = static_cast<size_t>(i);
      ChunkTable::Chunk chunk{limited(firsts[at]), limited(sizes[at])};
      if (chunk.first == 0 && chunk.bytes == 0) {
        if (entries.contains(kGdalNoData))
          problem(
              "parts of it are left out (a sparse file of GDAL's) and mean another number than "
              "0: write it whole with 'gdal_translate OLD NEW'");
        page.parts.push_back(chunk);
        continue;
      }
      if (page.filters.empty()) {
        const int64_t rows =
            page.strips ? std::min(page.part[page.rows],
                                   page.shape[page.rows] - i % in_plane * page.part[page.rows])
                        : page.part[page.rows];
        const int64_t wanted = page.part_bytes(rows);
        if (chunk.bytes < wanted)
          problem(fmt::format("a part of {} bytes has {}: the file is corrupted; fetch it again",
                              wanted, chunk.bytes));
        chunk.bytes = wanted;  // some writers pad
      }
      if (chunk.first > file_.size() || chunk.bytes > file_.size() - chunk.first)
        problem(
            fmt::format("{} bytes from byte {} on go beyond the end of the file, {}: it is "
                        "truncated or corrupted; fetch it again",
                        chunk.bytes, chunk.first, file_.size()));
      if (!page.problem.empty()) return;
      page.parts.push_back(chunk);
    }
  }

  const FileBytes& file_;
  TiffDirectories found_;
  bool big_endian_ = false, big_ = false;
  int64_t first_ = 0, parts_ = 0, entries_ = 0, block_at_ = 0;
  std::vector<uint8_t> block_;
  std::set<int64_t> seen_;
};

}  // namespace

int64_t TiffPage::part_bytes(int64_t of_rows) const {
  auto bytes = static_cast<int64_t>(size_of(element));
  for (size_t d = 0; d < part.size(); ++d)
    if (__builtin_mul_overflow(bytes, d == rows ? of_rows : part[d], &bytes)) return INT64_MAX;
  return bytes;
}

TiffDirectories read_tiff_directories(const FileBytes& file) {
  if (file.size() < 8)
    throw BadFile(
        unreadable(file, Content::tiff, fmt::format("a TIFF file of {} bytes", file.size())));
  return TiffReader(file).read();
}

}  // namespace tutti::data
