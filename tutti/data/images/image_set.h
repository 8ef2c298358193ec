#pragma once
// An ImageSet presents class folders or tar archives of JPEG and PNG as a Dataset. Its fields are
// "image", coded, which the step `resized-crop` decodes, and "label" i32.

#include <filesystem>
#include <memory>
#include <string_view>

#include "tutti/data/dataset.h"
#include "tutti/data/format/sets/stored_images.h"
#include "tutti/data/images/image_places.h"

namespace tutti::data {

class ImageSet final : public Dataset {
 public:
  /// `classes`: names in the order of their numbers; those of `places`, perhaps with more.
  ImageSet(ImagePlaces places, std::vector<std::string> classes, FieldStatistics statistics);

  int64_t size() const override { return places_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  /// Reads the file's bytes; decoding finds out whether they are an image. IoError naming a file
  /// that is missing, or larger than 1 GiB.
  void read(int64_t index, Sample& sample) const override;

  std::vector<SamplesOfFile> files() const override { return places_.files(); }

  std::string origin(int64_t index) const { return places_.origin(index); }

 private:
  ImagePlaces places_;
  std::vector<Field> fields_;
};

/// Reads a coded image's bytes into field `f` and sets the sample's origin. IoError, BadFile.
void read_image_bytes(const ImagePlaces::Bytes& at, size_t f, Sample& sample);

/// Opens the part of the set at `root` (image_places.h). Class numbers come from the training part,
/// if it exists, so that all parts agree. BadFile if there are no images, an archive is damaged, or
/// the training part lacks a class; ConfigError for more classes than `limit`.
std::unique_ptr<ImageSet> open_image_set(const std::filesystem::path& root, std::string_view part,
                                         const ClassLimit& limit,
                                         const FieldStatistics& statistics);

}  // namespace tutti::data
