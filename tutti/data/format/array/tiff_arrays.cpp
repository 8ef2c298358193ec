#include "tutti/data/format/array/tiff_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tutti/base/log.h"
#include "tutti/data/format/array/slab_copy.h"
#include "tutti/data/format/array/tiff_codecs.h"
#include "tutti/data/format/array/tiff_directory.h"
#include "tutti/data/format/array/tiff_stack.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

using TiffPages = std::vector<const TiffPage*>;

/// Makes arrays from pages.
class TiffArrays {
 public:
  TiffArrays(const FileBytes& file, const TiffDirectories& found) : file_(file), found_(found) {}

  std::vector<StoredArray> make() const {
    const TiffPage& first = found_.pages[0];
    std::vector<size_t> alike;
    std::vector<StoredArray> others;
    int64_t full_pages = 0;
    for (size_t i = 0; i < found_.pages.size(); ++i) {
      const TiffPage& page = found_.pages[i];
      full_pages += page.reduced ? 0 : 1;
      if (i == 0 || (!page.reduced && page.like(first))) {
        alike.push_back(i);
        continue;
      }
      others.push_back(array_of(fmt::format("page{}", i), {&page}, {}));
      add_below(i, others);
    }
    std::vector<StoredArray> arrays = {image_of(alike, full_pages)};
    add_levels(alike, arrays);
    std::ranges::move(others, std::back_inserter(arrays));
    return arrays;
  }

 private:
  /// Joins the pages that are like the first one, in the extents of its description.
  StoredArray image_of(const std::vector<size_t>& alike, int64_t full_pages) const {
    const TiffPage& first = found_.pages[0];
    TiffPages pages;
    for (const size_t i : alike) pages.push_back(&found_.pages[i]);
    const TiffStack stack = tiff_stack(first);
    const int64_t said = stack.planes(), there = std::ssize(pages);
    const bool settled = !stack.of_several && said == there;
    StoredArray image = array_of("image", pages, settled ? stack.extents : Extents{there});
    if (!image.info.problem.empty()) return image;
    if (stack.said.empty() || said <= (stack.one_behind ? there : full_pages)) {
      if (first.reduced && !found_.below[0].empty() && !found_.below[0][0].reduced)
        image.info.problem = "it is a small version of the image, which is 'level1'";
      return image;
    }
    if (stack.one_behind && there == 1 && lies_behind(first, said))
      return planes_behind(first, stack);
    const std::string more = fmt::format("{} speaks of more than the {} page{} of the file",
                                         stack.said, there, there == 1 ? "" : "s");
    if (!stack.in_files)
      image.info.problem = fmt::format(
          "{}: it is truncated; fetch it again{}", more,
          first.planes_said > 1 ? ""
                                : ", or where it was taken out of a stack on purpose, take off its "
                                  "description with 'tiffset -u 270 FILE'");
    else if (first_warning(fs::path(file_.name()).parent_path(), "planes in several files"))
      log::warn_alike("{}: {}, for it names a file for each part: each is read by itself",
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
  void add_levels(const std::vector<size_t>& alike, std::vector<StoredArray>& arrays) const {
    const std::vector<TiffPage>& first = found_.below[alike[0]];
    const bool same = std::ranges::all_of(alike, [&](size_t i) {
      return std::ranges::equal(found_.below[i], first,
                                [](const TiffPage& a, const TiffPage& b) { return a.like(b); });
    });
    if (!same && alike.size() > 1) {
      for (const size_t i : alike) add_below(i, arrays);
      return;
    }
    for (size_t level = 0; level < first.size(); ++level) {
      TiffPages pages;
      for (const size_t i : alike) pages.push_back(&found_.below[i][level]);
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
