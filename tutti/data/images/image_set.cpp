#include "tutti/data/images/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/file/file_list.h"

namespace tutti::data {
namespace {

/// No photograph is as large, and each reader thread would hold one.
constexpr int64_t kMostImageBytes = int64_t{1} << 30;

/// Returns the class names for all parts: from the training part, if it can be found.
std::vector<std::string> class_names(const std::filesystem::path& root, std::string_view part,
                                     const ImagePlaces& places) {
  if (part == "train") return places.classes();
  const ImageSource training = image_source(root, "train");
  if (!training.found()) return places.classes();
  const ImagePlaces of_training(training);
  if (of_training.numbered() != places.numbered())
    throw BadFile(
        "{}: of the training images and the {} images only one kind has .cls files: their classes "
        "cannot be compared",
        root.string(), part);
  return of_training.classes();
}

/// Changes this part's class numbers to indices of `classes`.
void renumber(ImagePlaces& places, const std::vector<std::string>& classes, std::string_view part) {
  std::vector<int> number;
  for (const std::string& name : places.classes()) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
      if (places.numbered()) continue;  // its numbers are already right
      throw BadFile(
          "the {} images have a class '{}', which the training images do not have: the folders of "
          "both must be called alike",
          part, name);
    }
    number.push_back(static_cast<int>(found - classes.begin()));
  }
  if (places.numbered()) return;
  for (int64_t i = 0; i < places.size(); ++i)
    places.set_label(i, number[static_cast<size_t>(places.label(i))]);
}

}  // namespace

ImageSet::ImageSet(ImagePlaces places, std::vector<std::string> classes, FieldStatistics statistics)
    : places_(std::move(places)),
      fields_({{.name = "image", .element = ElementType::u8, .coded = true},
               {.name = "label", .element = ElementType::i32}}) {
  fields_[0].statistics = std::move(statistics);
  fields_[1].class_names = std::move(classes);
}

void ImageSet::read(int64_t index, Sample& sample) const {
  const int32_t label = places_.label(index);
  std::memcpy(sample.own(1), &label, sizeof label);
  sample.set_origin(places_.origin(index));
  read_image_bytes(places_.open(index), 0, sample);
}

void read_image_bytes(const ImagePlaces::Bytes& at, size_t f, Sample& sample) {
  if (at.bytes > kMostImageBytes)
    throw BadFile("{} has {} bytes, more than an image of {} that is read", sample.origin(),
                  at.bytes, kMostImageBytes);
  auto* bytes = static_cast<uint8_t*>(sample.own(f, static_cast<size_t>(at.bytes)));
  at.file.read(at.offset, {bytes, static_cast<size_t>(at.bytes)});
}

std::unique_ptr<ImageSet> open_image_set(const std::filesystem::path& root, std::string_view part,
                                         const ClassLimit& limit,
                                         const FieldStatistics& statistics) {
  const ImageSource source = image_source(root, part);
  if (!source.found())
    throw BadFile(
        "{}: there are no {} images: neither a folder '{}' with class folders or .tar files, nor "
        ".tar files with '{}' in their names",
        root.string(), part, part, part);
  if (const std::vector<std::filesystem::path> missing = missing_parts(source.tars);
      !missing.empty())
    log::warn_once("{} is missing, and others of its set are there: fetch it again",
                   missing.front().string());
  ImagePlaces places(source);
  std::vector<std::string> classes = class_names(root, part, places);
  renumber(places, classes, part);
  for (int64_t i = 0; i < places.size(); ++i)
    if (const int64_t count = limit.count > 0 ? limit.count : std::ssize(classes);
        places.label(i) >= count)
      throw ConfigError(fmt::format("{}: is of class {}, and {} says that there are {}",
                                    places.origin(i), places.label(i),
                                    limit.count > 0 ? limit.key : "the training set", count));
  for (int64_t c = std::ssize(classes); c < limit.count; ++c)
    classes.push_back(fmt::format("class {}", c));
  return std::make_unique<ImageSet>(std::move(places), std::move(classes), statistics);
}

}  // namespace tutti::data
