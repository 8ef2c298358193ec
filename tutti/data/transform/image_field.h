#pragma once
// ImageField: from a coded image of any size to pixels of a fixed one, the step `resized-crop`.

#include <span>
#include <string>

#include "tutti/data/images/resample.h"
#include "tutti/data/transform/field_writer.h"
#include "tutti/data/transform/steps.h"

namespace tutti::data {

/// What is taken of an image of this size.
struct TakenPart {
  ImageBox box;        ///< what becomes the pixels, in pixels of the image
  ImageWindow bounds;  ///< pixels that may have a part in them
};

/// A part of `area` and `aspect` at a place, all of them chance, as torchvision's
/// RandomResizedCrop chooses it: ten attempts, then the middle. Only its pixels count.
TakenPart random_part(const ResizedCrop& crop, const ImageSize& image, const Chance& chance);
/// torchvision's Resize(shorter) and CenterCrop in one: neighbours beyond the crop count.
TakenPart middle_part(const ResizedCrop& crop, const ImageSize& image);

/// Immutable; any thread.
class ImageField {
 public:
  /// ConfigError naming the field where one of the two is missing: coded images and the step.
  ImageField(const Field& stored, const Derivation& derivation);

  /// u8 [3, height, width], with what is known of the stored field's channels.
  const Field& field() const { return made_; }
  /// The pixels, which stay until the thread's next call. Without `chance` the middle. BadFile that
  /// begins with `origin`, where the image lies, and says what to do.
  const uint8_t* make(std::span<const uint8_t> coded, const std::string& origin,
                      const Chance* chance) const;

 private:
  Field made_;
  ResizedCrop crop_;
};

}  // namespace tutti::data
