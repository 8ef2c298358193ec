#pragma once
// Picture: pixels to draw fields into, for people who look at predictions.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace tutti::cli {

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

  /// Ignores pixels outside of the picture.
  void set(int64_t x, int64_t y, Colour colour);
  void fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour colour);
  void save(const std::filesystem::path& path) const;

 private:
  int64_t width_, height_;
  std::vector<uint8_t> rgb_;
};

/// Returns a colour from dark blue at 0 over green to yellow at 1; other values as the nearer end,
/// NaN grey.
Colour on_scale(double value);
/// Returns white for class 0, then colours that people can distinguish, repeated after seven.
Colour of_class(int64_t number);

/// Sheets side by side, the pixels of small ones enlarged. `scale`: values from the sheet's 2nd to
/// its 98th percentile fill the colour scale; otherwise the numbers are classes. A sheet of one row
/// is a curve, whose width does not depend on the number of values.
struct Panel {
  Sheet sheet;
  bool scale = true;
};
Picture side_by_side(std::span<const Panel> panels);

/// Draws points (truth, prediction) in a square with its diagonal.
Picture scatter(std::span<const float> truth, std::span<const float> prediction);

}  // namespace tutti::cli
