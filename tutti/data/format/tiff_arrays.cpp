#include "tutti/data/format/tiff_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "tutti/data/format/tiff_codecs.h"

namespace tutti::data {
namespace {

enum TiffTag : uint16_t {
  kSubfileType = 254,
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kFillOrder = 266,
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
  kSampleFormat = 339
};

/// Where the values of a tag lie.
struct TiffEntry {
  int type = 0;
  int64_t count = 0, first = 0;
};

struct TiffPage {
  std::map<uint16_t, TiffEntry> entries;
  ElementType element{};
  std::vector<int64_t> shape;  ///< of the page: [H, W] or [H, W, C]
  std::vector<int64_t> part;   ///< of a strip or tile, likewise
  std::vector<ChunkTable::Filter> filters;
  bool strips = true;
  std::string problem;

  bool like(const TiffPage& other) const {
    return problem.empty() && other.problem.empty() && element == other.element &&
           shape == other.shape && part == other.part && filters == other.filters;
  }
};

class TiffReader {
 public:
  explicit TiffReader(const FileBytes& file) : file_(file) {}

  std::vector<StoredArray> read() {
    read_header();
    std::vector<TiffPage> pages;
    std::set<int64_t> seen;
    for (int64_t at = first_; at != 0;) {
      if (!seen.insert(at).second) refuse(at, "a page of its own", "one that was there before");
      pages.emplace_back();
      at = read_directory(at, pages.back());
      describe(pages.back());
    }
    if (pages.empty()) refuse(4, "a page", "none");
    return arrays_of(pages);
  }

 private:
  [[noreturn]] void refuse(int64_t at, std::string_view expected, std::string_view found) const {
    throw BadFile(
        fmt::format("{}: expected {} at byte {} of a TIFF file, found {}: the file is "
                    "truncated or corrupted; fetch it again",
                    file_.name(), expected, at, found));
  }

  uint64_t number(int64_t at, int bytes) const {
    if (at < 0 || at > file_.size() - bytes)
      refuse(at, fmt::format("{} bytes", bytes), fmt::format("the end at {}", file_.size()));
    uint8_t raw[8] = {};
    file_.read(at, {raw, static_cast<size_t>(bytes)});
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint64_t{raw[i]} << 8 * (big_endian_ ? bytes - 1 - i : i);
    return value;
  }
  int64_t place(int64_t at) const {
    const uint64_t value = number(at, big_ ? 8 : 4);
    if (value > static_cast<uint64_t>(file_.size()))
      refuse(at, "a place in the file", std::to_string(value));
    return static_cast<int64_t>(value);
  }

  void read_header() {
    uint8_t mark = 0;
    file_.read(0, {&mark, 1});
    big_endian_ = mark == 'M';
    big_ = number(2, 2) == 43;
    if (big_ && (number(4, 2) != 8 || number(6, 2) != 0))
      refuse(4, "places of 8 bytes", std::to_string(number(4, 2)));
    first_ = place(big_ ? 8 : 4);
  }

  /// Returns where the next one lies, 0: nowhere.
  int64_t read_directory(int64_t at, TiffPage& page) const {
    const auto count = static_cast<int64_t>(number(at, big_ ? 8 : 2));
    const int64_t entry_bytes = big_ ? 20 : 12, value_bytes = big_ ? 8 : 4;
    at += big_ ? 8 : 2;
    if (count < 1 || count > (file_.size() - at) / entry_bytes)
      refuse(at, "entries within the file", std::to_string(count));
    for (int64_t i = 0; i < count; ++i, at += entry_bytes) {
      TiffEntry entry{.type = static_cast<int>(number(at + 2, 2))};
      const uint64_t values = number(at + 4, big_ ? 8 : 4);
      const int64_t bytes = size_of_type(entry.type);
      if (bytes == 0) continue;  // texts and what else does not matter here
      if (values > static_cast<uint64_t>(file_.size()) / static_cast<uint64_t>(bytes))
        refuse(at, "values within the file", std::to_string(values));
      entry.count = static_cast<int64_t>(values);
      const int64_t inside = at + (big_ ? 12 : 8);
      entry.first = entry.count * bytes <= value_bytes ? inside : place(inside);
      if (entry.count * bytes > file_.size() - entry.first)
        refuse(at, "values within the file", std::to_string(entry.first));
      page.entries[static_cast<uint16_t>(number(at, 2))] = entry;
    }
    return place(at);
  }

  /// Of whole numbers; 0 of other types.
  static int64_t size_of_type(int type) {
    switch (type) {
      case 1: return 1;
      case 3: return 2;
      case 4: return 4;
      case 16: return 8;
      default: return 0;
    }
  }

  uint64_t value(const TiffPage& page, TiffTag tag, int64_t index, uint64_t otherwise) const {
    const auto found = page.entries.find(tag);
    if (found == page.entries.end() || index >= found->second.count) return otherwise;
    const auto bytes = static_cast<int>(size_of_type(found->second.type));
    return number(found->second.first + index * bytes, bytes);
  }

  /// Extents that a file could never fill are a problem that is found later: these do not overflow.
  int64_t extent(const TiffPage& page, TiffTag tag, const char* of) const {
    const uint64_t found = value(page, tag, 0, 0);
    if (found < 1 || found > uint64_t{1} << 31)
      throw BadFile(fmt::format("{}: {} of a page is {}: the file is corrupted; fetch it again",
                                file_.name(), of, found));
    return static_cast<int64_t>(found);
  }

  static std::optional<ElementType> element_of(uint64_t format, uint64_t bits) {
    const char* const kind = format == 1 ? "u" : format == 2 ? "i" : format == 3 ? "f" : "none";
    ElementType type{};
    if (!element_type_of(fmt::format("{}{}", kind, bits), type)) return std::nullopt;
    return type;
  }

  /// Fills everything but the entries.
  void describe(TiffPage& page) const {
    const int64_t height = extent(page, kImageLength, "the height");
    const int64_t width = extent(page, kImageWidth, "the width");
    const uint64_t samples = value(page, kSamplesPerPixel, 0, 1);
    const uint64_t bits = value(page, kBitsPerSample, 0, 1);
    const uint64_t format = value(page, kSampleFormat, 0, 1);
    const auto problem = [&](std::string what) {
      if (page.problem.empty()) page.problem = std::move(what);
    };
    if (samples < 1 || samples > 65535)
      return problem(fmt::format("a pixel has {} samples", samples));
    const auto element = element_of(format, bits);
    page.shape = {height, width};
    if (samples > 1) page.shape.push_back(static_cast<int64_t>(samples));
    if (!element)
      return problem(
          fmt::format("samples of {} bits and format {} are not known here", bits, format));
    page.element = *element;
    for (uint64_t i = 1; i < samples; ++i)
      if (value(page, kBitsPerSample, static_cast<int64_t>(i), bits) != bits)
        problem("samples of a pixel differ in size");
    if (value(page, kFillOrder, 0, 1) != 1) problem("its bits are in reverse order");
    if (samples > 1 && value(page, kPlanarConfiguration, 0, 1) != 1)
      problem("samples lie in planes of their own: save it with interleaved samples");
    page.strips = !page.entries.contains(kTileOffsets);
    page.part = page.shape;
    if (page.strips) {
      page.part[0] = static_cast<int64_t>(std::min<uint64_t>(
          value(page, kRowsPerStrip, 0, UINT32_MAX), static_cast<uint64_t>(height)));
      if (page.part[0] < 1) problem("its strips have no rows");
    } else {
      page.part[0] = extent(page, kTileLength, "the height of a tile");
      page.part[1] = extent(page, kTileWidth, "the width of a tile");
    }
    describe_packing(page, problem);
  }

  template <class Problem>
  void describe_packing(TiffPage& page, const Problem& problem) const {
    using Filter = ChunkTable::Filter;
    const uint64_t compression = value(page, kCompression, 0, 1);
    const uint64_t predictor = value(page, kPredictor, 0, 1);
    const bool floats = page.element == ElementType::f16 || page.element == ElementType::f32 ||
                        page.element == ElementType::f64;
    // A predictor means nothing where nothing is packed.
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

  std::vector<StoredArray> arrays_of(const std::vector<TiffPage>& pages) {
    std::vector<const TiffPage*> alike;
    std::vector<StoredArray> others;
    for (size_t i = 0; i < pages.size(); ++i) {
      const bool reduced = (value(pages[i], kSubfileType, 0, 0) & 1) != 0;
      if (i == 0 || (!reduced && pages[i].like(pages[0])))
        alike.push_back(&pages[i]);
      else
        others.push_back(array_of(fmt::format("page{}", i), {&pages[i]}));
    }
    std::vector<StoredArray> arrays;
    arrays.push_back(array_of("image", alike));
    for (StoredArray& other : others) arrays.push_back(std::move(other));
    return arrays;
  }

  StoredArray array_of(const std::string& name, const std::vector<const TiffPage*>& pages) {
    const TiffPage& page = *pages[0];
    StoredArray array;
    array.info = {.name = name, .type = page.element, .shape = page.shape, .problem = page.problem};
    array.file = file_;
    array.swapped = big_endian_;
    if (!page.problem.empty()) return array;
    auto table = std::make_shared<ChunkTable>();
    table->shape = page.part;
    table->filters = page.filters;
    table->short_edges = page.strips;
    table->samples = page.shape.size() > 2 ? page.shape[2] : 1;
    if (pages.size() > 1) {
      array.info.shape.insert(array.info.shape.begin(), std::ssize(pages));
      table->shape.insert(table->shape.begin(), 1);
    }
    array.info.chunk = table->shape;
    const bool lzw = std::ranges::find(page.filters, ChunkTable::Filter::lzw) != page.filters.end();
    const int64_t gain = page.filters.empty() ? 1 : lzw ? kMostLzwGain : kMostInflation;
    check_announced(array.info, file_.size() > INT64_MAX / gain ? INT64_MAX : file_.size() * gain);
    if (array.info.problem.empty() && bytes_of(page, page.part[0]) / gain > file_.size())
      array.info.problem = "its tiles are larger than the file can hold: it is corrupted";
    if (array.info.problem.empty()) place_parts(pages, array, *table);
    array.chunks = std::move(table);
    return array;
  }

  void place_parts(const std::vector<const TiffPage*>& pages, StoredArray& array,
                   ChunkTable& table) {
    const TiffPage& first = *pages[0];
    const auto along = [&](size_t d) {
      return (first.shape[d] + first.part[d] - 1) / first.part[d];
    };
    const int64_t parts = along(0) * along(1);
    const int64_t whole = bytes_of(first, first.part[0]);
    for (size_t p = 0; p < pages.size(); ++p)
      for (int64_t i = 0; i < parts; ++i) {
        // Each takes bytes of the tables in the file, unless pages share theirs.
        if (++parts_ > file_.size()) refuse(first_, "at most a part a byte", "more");
        const int64_t rows = first.strips
                                 ? std::min(first.part[0], first.shape[0] - i * first.part[0])
                                 : first.part[0];
        ChunkTable::Chunk chunk = part(*pages[p], i);
        if (first.filters.empty()) {
          const int64_t wanted = first.strips ? bytes_of(first, rows) : whole;
          if (chunk.bytes < wanted)
            array.info.problem =
                fmt::format("a part of {} bytes has {}: the file is corrupted; fetch it again",
                            wanted, chunk.bytes);
          chunk.bytes = wanted;  // some writers pad
        }
        if (chunk.first > file_.size() || chunk.bytes > file_.size() - chunk.first)
          array.info.problem = fmt::format(
              "{} bytes from byte {} on go beyond the end of the file, {}: it is truncated or "
              "corrupted; fetch it again",
              chunk.bytes, chunk.first, file_.size());
        if (!array.info.problem.empty()) return;
        table.chunks.emplace_hint(table.chunks.end(), static_cast<int64_t>(p) * parts + i, chunk);
      }
  }

  /// What check_announced() has let through does not overflow; a tile is then at most as large.
  int64_t bytes_of(const TiffPage& page, int64_t rows) const {
    int64_t bytes = static_cast<int64_t>(size_of(page.element));
    for (size_t d = 1; d < page.part.size(); ++d)
      if (__builtin_mul_overflow(bytes, page.part[d], &bytes)) return INT64_MAX;
    return __builtin_mul_overflow(bytes, rows, &bytes) ? INT64_MAX : bytes;
  }

  ChunkTable::Chunk part(const TiffPage& page, int64_t index) const {
    const uint64_t first =
        value(page, page.strips ? kStripOffsets : kTileOffsets, index, UINT64_MAX);
    const uint64_t bytes =
        value(page, page.strips ? kStripByteCounts : kTileByteCounts, index, UINT64_MAX);
    const auto limited = [](uint64_t x) {
      return static_cast<int64_t>(std::min<uint64_t>(x, INT64_MAX));
    };
    return {limited(first), limited(bytes)};
  }

  const FileBytes& file_;
  bool big_endian_ = false, big_ = false;
  int64_t first_ = 0, parts_ = 0;
};

}  // namespace

bool is_tiff(std::span<const uint8_t> head) {
  if (head.size() < 8) return false;
  const bool little = head[0] == 'I' && head[1] == 'I' && head[3] == 0;
  const bool big = head[0] == 'M' && head[1] == 'M' && head[2] == 0;
  const uint8_t version = little ? head[2] : head[3];
  return (little || big) && (version == 42 || version == 43);
}

std::vector<StoredArray> read_tiff(const FileBytes& file) {
  if (file.size() < 8)
    throw BadFile(fmt::format("{}: a TIFF file of {} bytes: it is truncated; fetch it again",
                              file.name(), file.size()));
  return TiffReader(file).read();
}

}  // namespace tutti::data
