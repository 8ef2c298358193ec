#include "tutti/data/format/array/tiff_stack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace tutti::data {
namespace {

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
  TiffStack stack{.said = fmt::format("ImageJ's images={}", images), .one_behind = true};
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
  TiffStack stack{.said = fmt::format("tifffile's shape [{}]", fmt::join(shape, ", ")),
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
  stack.said = fmt::format("OME's description of {} planes", planes);
  stack.in_files = names_files(text);
  return stack;
}

}  // namespace

int64_t TiffStack::planes() const { return capped_product(extents); }

TiffStack tiff_stack(const TiffPage& first) {
  const std::string_view text = first.description;
  TiffStack stack;
  if (first.planes_said > 1)
    stack = {.extents = {first.planes_said},
             .said = fmt::format("MetaMorph's {} planes", first.planes_said),
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

}  // namespace tutti::data
