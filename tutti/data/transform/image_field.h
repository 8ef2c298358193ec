#pragma once
// An ImageField turns a coded image of any size into pixels of a fixed size: the step
// `resized-crop`.

#include <span>
#include <string>

#include "tutti/data/images/resample.h"
#include "tutti/data/transform/field_writer.h"
#include "tutti/data/transform/steps.h"

namespace tutti::data {

/// The part to take from an image of a given size.
struct TakenPart {
  ImageBox box;        ///< the part to scale, in pixels of the image
  ImageWindow bounds;  ///< the pixels that may contribute
};

/// Chooses a part with random `area`, `aspect` and place, as torchvision's RandomResizedCrop does:
/// ten attempts, then the middle. Only pixels inside the part contribute.
TakenPart random_part(const ResizedCrop& crop, const ImageSize& image, const Chance& chance);
/// Combines torchvision's Resize(shorter) and CenterCrop: neighbours beyond the crop contribute.
TakenPart middle_part(const ResizedCrop& crop, const ImageSize& image);

/// Immutable; usable from any thread.
class ImageField {
 public:
  /// ConfigError naming the field if it is coded without the step, or has the step without being
  /// coded.
  ImageField(const Field& stored, const Derivation& derivation);

  /// Returns the result's field: u8 [3, height, width], with the stored field's channel statistics.
  const Field& field() const { return made_; }
  /// Returns the pixels, valid until the thread's next call. Without `chance` it takes the middle.
  /// BadFile that begins with `origin`, the image's place, and says what to do.
  const uint8_t* make(std::span<const uint8_t> coded, const std::string& origin,
                      const Chance* chance) const;

 private:
  Field made_;
  ResizedCrop crop_;
};

}  // namespace tutti::data
