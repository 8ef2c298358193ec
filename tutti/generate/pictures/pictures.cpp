#include "tutti/generate/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

constexpr std::array<const char*, kPictureShapes> kShapeNames = {
    "disc", "square", "triangle", "star", "ring", "cross", "ellipse", "crescent"};
constexpr std::array<const char*, kPictureTextures> kTextureNames = {"plain", "stripes", "checks",
                                                                     "dots", "rings"};
constexpr float kTurn = 6.2831853f;

using Colour = std::array<float, 3>;

/// Shapes vary first, so that few classes differ in shape; then textures, then hues.
struct PictureKind {
  int shape, texture, hue;
};
PictureKind picture_kind(int label) {
  const int shape = label % kPictureShapes, rest = label / kPictureShapes;
  return {shape, (rest + shape) % kPictureTextures, rest / kPictureTextures};
}

/// Returns a negative number inside an object of about radius 1.
float outside(int shape, float x, float y) {
  const float r = std::hypot(x, y), ax = std::abs(x), ay = std::abs(y);
  switch (shape) {
    case 0: return r - 0.9f;
    case 1: return std::max(ax, ay) - 0.8f;
    case 2: return std::max(ax * 0.866f + y * 0.5f, -y) - 0.5f;
    case 3: return r - (0.62f + 0.36f * std::cos(5 * std::atan2(x, y)));
    case 4: return std::abs(r - 0.72f) - 0.24f;
    case 5: return std::min(std::max(ax - 0.95f, ay - 0.3f), std::max(ax - 0.3f, ay - 0.95f));
    case 6: return std::hypot(x, y / 0.42f) * 0.6f - 0.6f;
    default: return std::max(r - 0.95f, 0.75f - std::hypot(x - 0.55f, y));
  }
}

/// Returns the share of the second colour, 0 to 1.
float weave(int texture, float x, float y, float waves) {
  const auto wave = [&](float at) { return std::sin(at * waves * kTurn / 2); };
  const auto edge = [](float at) { return std::clamp(at * 3 + 0.5f, 0.0f, 1.0f); };
  switch (texture) {
    case 0: return 0;
    case 1: return edge(wave(x));
    case 2: return edge(wave(x) * wave(y));
    case 3: return edge(0.25f + 0.5f * (wave(x) + wave(y)) - 0.4f);
    default: return edge(wave(std::hypot(x, y)));
  }
}

Colour of_hue(float hue, float saturation, float value) {
  Colour colour;
  for (size_t c = 0; c < 3; ++c) {
    const float at = hue * 6 + static_cast<float>(c == 0 ? 5 : c == 1 ? 3 : 1);
    const float k = at - 6 * std::floor(at / 6);
    colour[c] = value - value * saturation * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
  }
  return colour;
}

/// All random choices of a picture.
struct Scene {
  Colour light, dark, ground;
  std::array<float, 3> slope;                 // background's brightness: along x, along y, waves
  std::array<std::array<float, 3>, 3> waves;  // frequency along x and y, phase
  float x, y, radius, cosine, sine, stripes, noise;
};

Scene scene_of(const PictureSpec& spec, const PictureKind& kind, Rng& rng, const Picture& picture) {
  const auto between = [&](float low, float high) { return low + (high - low) * rng.uniform(); };
  Scene scene;
  const bool many = spec.classes > kPictureShapes * kPictureTextures;
  const float free_hue = rng.uniform();
  const float hue =
      many ? (static_cast<float>(kind.hue) + between(0.2f, 0.8f)) / kPictureHues : free_hue;
  const float bright = between(0.75f, 1);
  scene.light = of_hue(hue, between(0.4f, 0.9f), bright);
  scene.dark = of_hue(hue, between(0.5f, 0.9f), bright * between(0.15f, 0.35f));
  // The hue differs and the brightness lies between, so that the object is visible.
  scene.ground = of_hue(hue + between(0.25f, 0.75f), between(0.1f, 0.6f), between(0.3f, 0.6f));
  scene.slope = {between(-0.2f, 0.2f), between(-0.2f, 0.2f), between(0.02f, 0.1f)};
  for (auto& wave : scene.waves) wave = {between(-6, 6), between(-6, 6), between(0, kTurn)};
  const auto height = static_cast<float>(picture.height), width = static_cast<float>(picture.width);
  scene.radius = between(0.28f, 0.42f) * std::min(height, width);
  scene.x = between(scene.radius, width - scene.radius);
  scene.y = between(scene.radius, height - scene.radius);
  const float angle = between(0, kTurn);
  scene.cosine = std::cos(angle);
  scene.sine = std::sin(angle);
  scene.stripes = between(2.2f, 3.2f);
  scene.noise = between(0.01f, 0.06f);
  return scene;
}

}  // namespace

std::string picture_class(const PictureSpec& spec, int label) {
  const PictureKind kind = picture_kind(label);
  std::string name = fmt::format("{:03}-{}-{}", label, kShapeNames[static_cast<size_t>(kind.shape)],
                                 kTextureNames[static_cast<size_t>(kind.texture)]);
  if (spec.classes > kPictureShapes * kPictureTextures) name += fmt::format("-hue{:02}", kind.hue);
  return name;
}

Picture generate_picture(const PictureSpec& spec, int64_t index) {
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  Picture picture{.label = static_cast<int>(index % spec.classes), .rgb = {}};
  const auto longer = static_cast<int64_t>(static_cast<float>(spec.side) * (1 + rng.uniform() / 2));
  const bool upright = rng.below(2) == 1;
  picture.height = upright ? longer : spec.side;
  picture.width = upright ? spec.side : longer;
  const PictureKind kind = picture_kind(picture.label);
  const Scene scene = scene_of(spec, kind, rng, picture);
  picture.rgb.resize(static_cast<size_t>(picture.height * picture.width) * 3);
  uint8_t* pixel = picture.rgb.data();
  for (int64_t row = 0; row < picture.height; ++row)
    for (int64_t column = 0; column < picture.width; ++column, pixel += 3) {
      const auto x = static_cast<float>(column), y = static_cast<float>(row);
      const float u = x / static_cast<float>(picture.width) - 0.5f,
                  v = y / static_cast<float>(picture.height) - 0.5f;
      float shade = scene.slope[0] * u + scene.slope[1] * v;
      for (const auto& wave : scene.waves)
        shade += scene.slope[2] * std::sin(wave[0] * u * 2 + wave[1] * v * 2 + wave[2]);
      const float dx = (x - scene.x) / scene.radius, dy = (y - scene.y) / scene.radius,
                  px = scene.cosine * dx + scene.sine * dy,
                  py = scene.cosine * dy - scene.sine * dx;
      const float inside =
          std::clamp(0.5f - outside(kind.shape, px, py) * scene.radius, 0.0f, 1.0f);
      const float second = weave(kind.texture, px, py, scene.stripes);
      const float grain = scene.noise * (rng.uniform() + rng.uniform() - 1) * 2;
      for (size_t c = 0; c < 3; ++c) {
        const float thing = scene.light[c] + (scene.dark[c] - scene.light[c]) * second;
        const float value =
            (scene.ground[c] + shade) * (1 - inside) + (thing + shade * 0.5f) * inside + grain;
        pixel[c] = static_cast<uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255 + 0.5f);
      }
    }
  return picture;
}

}  // namespace tutti::generate
