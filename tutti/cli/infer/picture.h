#pragma once
// Picture: pixels to draw fields into, for people who look at predictions.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace tutti {

using Colour = std::array<uint8_t, 3>;

/// A grid of numbers, rows from top to bottom.
struct Sheet {
  int64_t height = 0, width = 0;
  std::vector<float> values{};
};

class Picture {
 public:
  Picture(int64_t width, int64_t height);
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }

  /// Outside of the picture nothing happens.
  void set(int64_t x, int64_t y, Colour colour);
  void fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour colour);
  void save(const std::filesystem::path& path) const;

 private:
  int64_t width_, height_;
  std::vector<uint8_t> rgb_;
};

/// From dark blue at 0 over green to yellow at 1; other values as the nearer end, NaN grey.
Colour on_scale(double value);
/// Class 0 white, then colours that people tell apart, repeated after seven.
Colour of_class(int64_t number);

/// Sheets side by side, the pixels of small ones enlarged. `scale`: numbers from the sheet's second
/// to its 98th percent on the scale; otherwise the numbers are classes. A sheet of one row is a
/// curve, as wide for many values as for few.
struct Panel {
  Sheet sheet;
  bool scale = true;
};
Picture side_by_side(std::span<const Panel> panels);

/// Points (truth, prediction) on a square whose diagonal is drawn.
Picture scatter(std::span<const float> truth, std::span<const float> prediction);

}  // namespace tutti
