#pragma once
// Generates pictures of one object each, on a coloured background. Its class is its shape, its
// texture and, with many classes, its colour. A network must learn to ignore the rest: place, size,
// angle, light, the background's colours and waves, noise, and JPEG's artefacts.

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::generate {

inline constexpr int kPictureShapes = 8, kPictureTextures = 5, kPictureHues = 25;
inline constexpr int kMostPictureClasses = kPictureShapes * kPictureTextures * kPictureHues;
/// Pictures from this index on are never training pictures.
inline constexpr int64_t kFirstTestPicture = int64_t{1} << 32;

struct PictureSpec {
  int classes = 10;  ///< 2 to 1000
  int side = 128;    ///< shorter side; the longer one is up to half longer
  uint64_t seed = 1;
};

struct Picture {
  int label = 0;
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  ///< [height, width, 3]
};

/// Returns "003-star-plain", which sorts like the class numbers.
std::string picture_class(const PictureSpec& spec, int label);
/// Generates a picture: a pure function of (spec, index); index % classes is its label.
Picture generate_picture(const PictureSpec& spec, int64_t index);

}  // namespace tutti::generate
