#include "tutti/train/metrics/segmentation_score.h"

#include <cmath>
#include <map>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

/// Returns x log2 x, which is 0 at 0.
double x_log_x(double x) { return x > 0 ? x * std::log2(x) : 0; }

}  // namespace

SegmentationScore score_segmentation(std::span<const int32_t> segments,
                                     std::span<const uint32_t> truth) {
  CHECK(segments.size() == truth.size(), "{} voxels for {}", segments.size(), truth.size());
  // Sorted maps, so that sums are taken in one order.
  std::map<std::pair<uint32_t, int32_t>, int64_t> both;
  std::map<uint32_t, int64_t> of_truth;
  std::map<int32_t, int64_t> of_segment;
  SegmentationScore score;
  for (size_t v = 0; v < truth.size();) {
    size_t end = v + 1;  // the end of a run of equal voxels
    while (end < truth.size() && truth[end] == truth[v] && segments[end] == segments[v]) ++end;
    const auto count = static_cast<int64_t>(end - v);
    if (truth[v] != 0) {
      both[{truth[v], segments[v]}] += count;
      of_truth[truth[v]] += count;
      of_segment[segments[v]] += count;
      score.voxels += count;
    }
    v = end;
  }
  const auto n = static_cast<double>(score.voxels);
  double joint = 0, alone_truth = 0, alone_segment = 0, pairs = 0, pairs_truth = 0,
         pairs_segment = 0;
  for (const auto& [pair, count] : both) {
    const auto c = static_cast<double>(count);
    joint -= x_log_x(c / n);
    pairs += c * c;
    const int64_t united = of_truth[pair.first] + of_segment[pair.second] - count;
    score.found += pair.second != 0 && 2 * count > united;
  }
  for (const auto& [id, count] : of_truth) {
    alone_truth -= x_log_x(static_cast<double>(count) / n);
    pairs_truth += static_cast<double>(count) * static_cast<double>(count);
  }
  for (const auto& [id, count] : of_segment) {
    alone_segment -= x_log_x(static_cast<double>(count) / n);
    pairs_segment += static_cast<double>(count) * static_cast<double>(count);
    score.segments += id != 0;
  }
  score.objects = static_cast<int64_t>(of_truth.size());
  score.voi_split = std::max(0.0, joint - alone_truth);
  score.voi_merge = std::max(0.0, joint - alone_segment);
  if (score.voxels > 0) score.adapted_rand = 1 - 2 * pairs / (pairs_truth + pairs_segment);
  score.f1 = score.objects + score.segments == 0
                 ? 1
                 : 2 * static_cast<double>(score.found) /
                       static_cast<double>(score.objects + score.segments);
  return score;
}

}  // namespace tutti::train
