#pragma once
// ImageSet: class folders or tar archives of JPEG and PNG as a Dataset. Fields: "image", coded,
// which the step `resized-crop` decodes, and "label" i32.

#include <filesystem>
#include <memory>
#include <string_view>

#include "tutti/data/dataset.h"
#include "tutti/data/format/sets/stored_images.h"
#include "tutti/data/images/image_places.h"

namespace tutti::data {

class ImageSet final : public Dataset {
 public:
  /// `classes`: names in the order of their numbers; those of `places`, or more.
  ImageSet(ImagePlaces places, std::vector<std::string> classes, FieldStatistics statistics);

  int64_t size() const override { return places_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  /// Reads the file's bytes; whether they are an image is seen when they are decoded. IoError
  /// naming a file that is gone, or larger than 1 GiB.
  void read(int64_t index, Sample& sample) const override;

  std::vector<SamplesOfFile> files() const override { return places_.files(); }

  std::string origin(int64_t index) const { return places_.origin(index); }

 private:
  ImagePlaces places_;
  std::vector<Field> fields_;
};

/// A coded image's bytes into field `f`, whose sample says where they lie. IoError, BadFile.
void read_image_bytes(const ImagePlaces::Bytes& at, size_t f, Sample& sample);

/// The part of the set at `root` (image_places.h). Classes are those of the training part, where it
/// is there, so that all parts have the same numbers. BadFile where there are no images, a
/// damaged archive, or a class that the training part does not have; ConfigError for more classes
/// than `limit`.
std::unique_ptr<ImageSet> open_image_set(const std::filesystem::path& root, std::string_view part,
                                         const ClassLimit& limit,
                                         const FieldStatistics& statistics);

}  // namespace tutti::data
