// Implements distance_peaks() (flood_fill.h).

#include <algorithm>
#include <cmath>

#include "tutti/train/infer/flood_fill.h"

namespace tutti::train {
namespace {

constexpr int64_t kSmooth = 1, kSurroundings = 12, kPeak = 3;  // voxels to each side

/// A line of voxels along an axis.
struct VoxelLine {
  size_t first = 0, stride = 1;
  int64_t count = 0;
};

template <class Body>
void for_each_line(const std::array<int64_t, 3>& extents, size_t axis, Body body) {
  const std::array<size_t, 3> strides = {static_cast<size_t>(extents[1] * extents[2]),
                                         static_cast<size_t>(extents[2]), 1};
  const size_t p = axis == 0 ? 1 : 0, q = axis == 2 ? 1 : 2;
  for (int64_t i = 0; i < extents[p]; ++i)
    for (int64_t j = 0; j < extents[q]; ++j)
      body(VoxelLine{static_cast<size_t>(i) * strides[p] + static_cast<size_t>(j) * strides[q],
                     strides[axis], extents[axis]});
}

/// Averages over `reach` voxels to each side along all axes, as far as there are any.
void smooth(const std::array<int64_t, 3>& extents, int64_t reach, std::vector<float>& x) {
  std::vector<double> sums;
  for (size_t axis = 0; axis < 3; ++axis)
    for_each_line(extents, axis, [&](const VoxelLine& line) {
      sums.assign(1, 0);
      for (int64_t i = 0; i < line.count; ++i)
        sums.push_back(sums.back() +
                       static_cast<double>(x[line.first + static_cast<size_t>(i) * line.stride]));
      for (int64_t i = 0; i < line.count; ++i) {
        const int64_t low = std::max<int64_t>(0, i - reach),
                      high = std::min(line.count, i + reach + 1);
        x[line.first + static_cast<size_t>(i) * line.stride] =
            static_cast<float>((sums[static_cast<size_t>(high)] - sums[static_cast<size_t>(low)]) /
                               static_cast<double>(high - low));
      }
    });
}

std::vector<float> slope_of(const std::array<int64_t, 3>& extents, const std::vector<float>& x) {
  std::vector<float> squares(x.size(), 0.0f);
  for (size_t axis = 0; axis < 3; ++axis)
    for_each_line(extents, axis, [&](const VoxelLine& line) {
      const auto voxel = [&](int64_t i) {
        return line.first +
               static_cast<size_t>(std::clamp<int64_t>(i, 0, line.count - 1)) * line.stride;
      };
      for (int64_t i = 0; i < line.count; ++i) {
        const float d = (x[voxel(i + 1)] - x[voxel(i - 1)]) / 2;
        squares[voxel(i)] += d * d;
      }
    });
  for (float& s : squares) s = std::sqrt(s);
  return squares;
}

/// Computes squared distances along a line from the squares of the lines before: the lower
/// envelope of parabolas (Felzenszwalb, Huttenlocher 2012, "Distance transforms of sampled
/// functions").
void add_axis(const VoxelLine& line, std::vector<float>& squares) {
  const auto n = static_cast<size_t>(line.count);
  std::vector<double> f(n);
  for (size_t i = 0; i < n; ++i) f[i] = static_cast<double>(squares[line.first + i * line.stride]);
  std::vector<size_t> root(n, 0);
  std::vector<double> begins(n + 1, 0);
  begins[0] = -INFINITY;
  begins[1] = INFINITY;
  size_t k = 0;
  const auto meets = [&](size_t p, size_t q) {
    const auto a = static_cast<double>(p), b = static_cast<double>(q);
    return (f[q] + b * b - f[p] - a * a) / (2 * (b - a));
  };
  for (size_t q = 1; q < n; ++q) {
    double s = meets(root[k], q);
    while (s <= begins[k]) s = meets(root[--k], q);
    root[++k] = q;
    begins[k] = s;
    begins[k + 1] = INFINITY;
  }
  k = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto at = static_cast<double>(i);
    while (begins[k + 1] < at) ++k;
    const double d = at - static_cast<double>(root[k]);
    squares[line.first + i * line.stride] = static_cast<float>(d * d + f[root[k]]);
  }
}

/// Returns, for each voxel, the maximum within `reach` voxels to each side along all axes.
std::vector<float> largest_around(const std::array<int64_t, 3>& extents, int64_t reach,
                                  std::vector<float> x) {
  std::vector<float> row;
  for (size_t axis = 0; axis < 3; ++axis)
    for_each_line(extents, axis, [&](const VoxelLine& line) {
      row.clear();
      for (int64_t i = 0; i < line.count; ++i)
        row.push_back(x[line.first + static_cast<size_t>(i) * line.stride]);
      for (int64_t i = 0; i < line.count; ++i)
        x[line.first + static_cast<size_t>(i) * line.stride] =
            *std::max_element(row.begin() + std::max<int64_t>(0, i - reach),
                              row.begin() + std::min(line.count, i + reach + 1));
    });
  return x;
}

}  // namespace

std::vector<std::array<int64_t, 3>> distance_peaks(const VolumeView& image) {
  const std::array<int64_t, 3>& extents = image.extents;
  std::vector<float> grey(image.voxels.begin(), image.voxels.end());
  smooth(extents, kSmooth, grey);
  const std::vector<float> gradient = slope_of(extents, grey);
  std::vector<float> mean = gradient;
  smooth(extents, kSurroundings, mean);
  constexpr float kFar = 1e12f;
  std::vector<float> distance(gradient.size());
  for (size_t v = 0; v < gradient.size(); ++v) distance[v] = gradient[v] > mean[v] ? 0.0f : kFar;
  for (size_t axis = 0; axis < 3; ++axis)
    for_each_line(extents, axis, [&](const VoxelLine& line) { add_axis(line, distance); });
  const std::vector<float> largest = largest_around(extents, kPeak, distance);
  std::vector<size_t> peaks;
  for (size_t v = 0; v < distance.size(); ++v)
    if (distance[v] > 0 && distance[v] == largest[v]) peaks.push_back(v);
  std::ranges::stable_sort(peaks, [&](size_t a, size_t b) { return distance[a] > distance[b]; });
  std::vector<std::array<int64_t, 3>> points;
  for (const size_t v : peaks) {
    const auto i = static_cast<int64_t>(v);
    points.push_back({i / (extents[1] * extents[2]), i / extents[2] % extents[1], i % extents[2]});
  }
  return points;
}

}  // namespace tutti::train
