#include "tutti/data/format/array/tiff_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/log.h"
#include "tutti/data/format/array/slab_copy.h"
#include "tutti/data/format/array/tiff_codecs.h"
#include "tutti/data/format/array/tiff_directory.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

struct TiffStack {
  // The slowest first, without extents of 1: ImageJ's frames, slices and channels, OME's axes
  // except X and Y, the first extents of tifffile's shape, MetaMorph's planes.
  std::vector<int64_t> extents{};
  std::string declared{};   // "ImageJ's images=8"; empty: no description
  bool one_behind = false;  // one directory may stand for several consecutive planes
  bool of_several = false;  // planes of several images: extents have no meaning
  bool in_files = false;    // planes lie in several files, named by OME

  int64_t planes() const;
};

/// Returns the whole number at the start of `text`, from 1 to 2^31; otherwise 0.
int64_t count_at(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  (void)end;
  return error == std::errc() && value >= 1 && value <= int64_t{1} << 31 ? value : 0;
}

int64_t capped_product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents)
    if (__builtin_mul_overflow(product, extent, &product)) return INT64_MAX;
  return product;
}

TiffStack imagej_stack(std::string_view text) {
  const auto key = [&](std::string_view name) {
    const size_t at = text.find(name);
    return at == text.npos ? int64_t{0} : count_at(text.substr(at + name.size()));
  };
  const int64_t images = key("\nimages=");
  if (images < 2) return {};
  TiffStack stack{.declared = fmt::format("ImageJ's images={}", images), .one_behind = true};
  for (const char* axis : {"\nframes=", "\nslices=", "\nchannels="})
    stack.extents.push_back(std::max<int64_t>(key(axis), 1));
  if (stack.planes() != images) stack.extents = {images};
  return stack;
}

/// Reads tifffile's {"shape": [6, 40, 50]}, which covers all pages together.
TiffStack shaped_stack(std::string_view text, const TiffPage& first) {
  const size_t begin = text.find("\"shape\": [");
  if (begin == text.npos) return {};
  std::vector<int64_t> shape;
  for (size_t at = begin + 10; at < text.size();) {
    if (const int64_t extent = count_at(text.substr(at)); extent > 0)
      shape.push_back(extent);
    else
      return {};
    at = text.find_first_of(",]", at);
    if (at == text.npos || text[at] == ']') break;
    at = text.find_first_not_of(' ', at + 1);
  }
  const int64_t all = capped_product(shape), page = capped_product(first.shape);
  if (page < 1 || all % page != 0 || all == page) return {};
  TiffStack stack{.declared = fmt::format("tifffile's shape [{}]", fmt::join(shape, ", ")),
                  .one_behind = true};
  for (const int64_t extent : shape) {
    if (stack.planes() == all / page) break;
    stack.extents.push_back(extent);
  }
  if (stack.planes() != all / page) stack.extents = {all / page};
  return stack;
}

/// Says whether the description names more than one file.
bool names_files(std::string_view text) {
  constexpr std::string_view kName = "<UUID FileName=\"";
  std::string_view first;
  for (size_t at = text.find(kName); at != text.npos; at = text.find(kName, at + 1)) {
    const std::string_view rest = text.substr(at + kName.size()),
                           name = rest.substr(0, rest.find('"'));
    if (first.empty()) first = name;
    if (name != first) return true;
  }
  return false;
}

TiffStack ome_stack(std::string_view text, int64_t samples) {
  TiffStack stack;
  int64_t planes = 0, images = 0;
  for (size_t at = text.find("<Pixels "); at != text.npos; at = text.find("<Pixels ", at + 1)) {
    const std::string_view tag = text.substr(at, text.find('>', at) - at);
    const auto attribute = [&](std::string_view name) {
      const size_t value = tag.find(fmt::format(" {}=\"", name));
      return value == tag.npos ? std::string_view{} : tag.substr(value + name.size() + 3);
    };
    const int64_t t = count_at(attribute("SizeT")), z = count_at(attribute("SizeZ")),
                  channels = count_at(attribute("SizeC"));
    if (t == 0 || z == 0 || channels == 0) return {};
    const int64_t c = channels % samples == 0 ? channels / samples : channels;
    stack.extents.clear();
    std::string_view order = attribute("DimensionOrder").substr(0, 5);
    if (order.size() < 5) order = "XYZCT";
    for (const size_t axis : {4, 3, 2}) {  // the fastest axis is named first
      const char name = order[axis];
      stack.extents.push_back(name == 'T' ? t : name == 'C' ? c : z);
    }
    planes += stack.planes();
    if (++images > 1) stack.extents = {planes}, stack.of_several = true;
  }
  if (planes < 2) return {};
  stack.declared = fmt::format("OME's description of {} planes", planes);
  stack.in_files = names_files(text);
  return stack;
}

int64_t TiffStack::planes() const { return capped_product(extents); }

// Parses the first page's description. Invalid text counts as none.
TiffStack tiff_stack(const TiffPage& first) {
  const std::string_view text = first.description;
  TiffStack stack;
  if (first.planes_declared > 1)
    stack = {.extents = {first.planes_declared},
             .declared = fmt::format("MetaMorph's {} planes", first.planes_declared),
             .one_behind = true};
  else if (text.starts_with("ImageJ="))
    stack = imagej_stack(text);
  else if (text.find("<OME") != text.npos)
    stack = ome_stack(text, first.pixel_samples);
  else
    stack = shaped_stack(text, first);
  std::erase(stack.extents, 1);
  return stack;
}

using TiffPages = std::vector<const TiffPage*>;

/// Makes arrays from pages.
class TiffArrays {
 public:
  TiffArrays(const FileBytes& file, const TiffDirectories& found) : file_(file), found_(found) {}

  std::vector<StoredArray> make() const {
    const TiffPage& first = found_.pages[0];
    std::vector<size_t> similar;
    std::vector<StoredArray> others;
    int64_t full_pages = 0;
    for (size_t i = 0; i < found_.pages.size(); ++i) {
      const TiffPage& page = found_.pages[i];
      full_pages += page.reduced ? 0 : 1;
      if (i == 0 || (!page.reduced && page.like(first))) {
        similar.push_back(i);
        continue;
      }
      others.push_back(array_of(fmt::format("page{}", i), {&page}, {}));
      add_below(i, others);
    }
    std::vector<StoredArray> arrays = {image_of(similar, full_pages)};
    add_levels(similar, arrays);
    std::ranges::move(others, std::back_inserter(arrays));
    return arrays;
  }

 private:
  /// Joins the pages that are like the first one, in the extents of its description.
  StoredArray image_of(const std::vector<size_t>& similar, int64_t full_pages) const {
    const TiffPage& first = found_.pages[0];
    TiffPages pages;
    for (const size_t i : similar) pages.push_back(&found_.pages[i]);
    const TiffStack stack = tiff_stack(first);
    const int64_t declared = stack.planes(), there = std::ssize(pages);
    const bool settled = !stack.of_several && declared == there;
    StoredArray image = array_of("image", pages, settled ? stack.extents : Extents{there});
    if (!image.info.problem.empty()) return image;
    if (stack.declared.empty() || declared <= (stack.one_behind ? there : full_pages)) {
      if (first.reduced && !found_.below[0].empty() && !found_.below[0][0].reduced)
        image.info.problem = "it is a small version of the image, which is 'level1'";
      return image;
    }
    if (stack.one_behind && there == 1 && lies_behind(first, declared))
      return planes_behind(first, stack);
    const std::string more = fmt::format("{} speaks of more than the {} page{} of the file",
                                         stack.declared, there, there == 1 ? "" : "s");
    if (!stack.in_files)
      image.info.problem =
          fmt::format("{}: it is truncated; fetch it again{}", more,
                      first.planes_declared > 1
                          ? ""
                          : ", or where it was taken out of a stack on purpose, take off its "
                            "description with 'tiffset -u 270 FILE'");
    else if (first_warning(fs::path(file_.name()).parent_path(), "planes in several files"))
      log::warn_once("{}: {}, for it names a file for each part: each is read by itself",
                     file_.name(), more);
    return image;
  }

  /// Says whether the page's bytes are contiguous, with space in the file for that many planes.
  bool lies_behind(const TiffPage& page, int64_t planes) const {
    if (!page.filters.empty() || !page.strips || page.parts.empty()) return false;
    int64_t next = page.parts[0].first;
    for (const ChunkTable::Chunk& part : page.parts) {
      if (part.first != next || part.bytes == 0) return false;
      next += part.bytes;
    }
    const int64_t bytes = next - page.parts[0].first;
    return planes <= (file_.size() - page.parts[0].first) / bytes;
  }

  StoredArray planes_behind(const TiffPage& page, const TiffStack& stack) const {
    StoredArray array;
    array.info = {.name = "image", .type = page.element, .shape = stack.extents};
    array.info.shape.insert(array.info.shape.end(), page.shape.begin(), page.shape.end());
    array.file = file_;
    array.first = page.parts[0].first;
    array.swapped = found_.big_endian;
    return array;
  }

  /// Adds the first, second ... SubIFDs of all those pages: an image's smaller versions.
  void add_levels(const std::vector<size_t>& similar, std::vector<StoredArray>& arrays) const {
    const std::vector<TiffPage>& first = found_.below[similar[0]];
    const bool same = std::ranges::all_of(similar, [&](size_t i) {
      return std::ranges::equal(found_.below[i], first,
                                [](const TiffPage& a, const TiffPage& b) { return a.like(b); });
    });
    if (!same && similar.size() > 1) {
      for (const size_t i : similar) add_below(i, arrays);
      return;
    }
    for (size_t level = 0; level < first.size(); ++level) {
      TiffPages pages;
      for (const size_t i : similar) pages.push_back(&found_.below[i][level]);
      arrays.push_back(array_of(fmt::format("level{}", level + 1), pages,
                                leading_extents(arrays[0], pages.size())));
    }
  }
  void add_below(size_t page, std::vector<StoredArray>& arrays) const {
    for (size_t level = 0; level < found_.below[page].size(); ++level)
      arrays.push_back(array_of(fmt::format("page{}/level{}", page, level + 1),
                                {&found_.below[page][level]}, {}));
  }
  /// Returns the extents of the image before a page's own.
  Extents leading_extents(const StoredArray& image, size_t pages) const {
    const Extents& shape = image.info.shape;
    const auto own = found_.pages[0].shape.size();
    Extents leading(shape.begin(),
                    shape.end() - static_cast<ptrdiff_t>(std::min(own, shape.size())));
    int64_t product = 1;
    for (const int64_t extent : leading) product *= extent;
    return product == static_cast<int64_t>(pages) ? leading : Extents{static_cast<int64_t>(pages)};
  }

  /// `leading`: the extents formed by the pages; none for a single page.
  StoredArray array_of(const std::string& name, const TiffPages& pages,
                       const Extents& leading) const {
    const TiffPage& page = *pages[0];
    StoredArray array;
    array.info = {.name = name, .type = page.element, .shape = page.shape, .problem = page.problem};
    // A page with missing bytes spoils the whole stack: it would otherwise be left out silently.
    for (size_t p = 1; array.info.problem.empty() && p < pages.size(); ++p)
      if (!pages[p]->problem.empty())
        array.info.problem = fmt::format("page {} of {}: {}", p, pages.size(), pages[p]->problem);
    array.file = file_;
    array.swapped = found_.big_endian;
    auto table = std::make_shared<ChunkTable>();
    table->shape = page.part;
    table->filters = page.filters;
    table->short_edges = page.strips;
    table->samples = page.samples;
    if (pages.size() > 1) {
      array.info.shape.insert(array.info.shape.begin(), leading.begin(), leading.end());
      table->shape.insert(table->shape.begin(), leading.size(), 1);
    }
    array.info.chunk = table->shape;
    if (!array.info.problem.empty()) return array;
    check_announced(array.info, most_unpacked(file_.size(), page.filters));
    int64_t number = 0;
    for (const TiffPage* one : pages)
      for (const ChunkTable::Chunk& part : one->parts) {
        if (part.bytes > 0) table->chunks.emplace_hint(table->chunks.end(), number, part);
        ++number;  // omitted parts hold zeros
      }
    array.chunks = std::move(table);
    return array;
  }

  const FileBytes& file_;
  const TiffDirectories& found_;
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
  const TiffDirectories found = read_tiff_directories(file);
  return TiffArrays(file, found).make();
}

}  // namespace tutti::data
