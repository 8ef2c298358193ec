#include "tutti/study/curves.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tutti::study {
namespace {

struct Samples {
  std::vector<double> values, seconds;
};

/// Returns one point for each key that every run has.
std::vector<CurvePoint> common_points(const std::map<double, Samples>& samples, size_t runs) {
  std::vector<CurvePoint> curve;
  for (const auto& [epoch, at] : samples) {
    if (at.values.size() != runs) continue;
    const auto [low, high] = std::minmax_element(at.values.begin(), at.values.end());
    curve.push_back({epoch, median(at.seconds), median(at.values), *low, *high});
  }
  return curve;
}

}  // namespace

std::vector<CurvePoint> quality_curve(const Runs& runs, const std::string& metric) {
  std::map<double, Samples> samples;
  for (const RunSummary* run : runs)
    for (const trace::EvalRecord& eval : run->log.evals)
      if (const double value = eval.value(metric); std::isfinite(value)) {
        samples[eval.epoch].values.push_back(value);
        samples[eval.epoch].seconds.push_back(eval.wall_seconds);
      }
  return common_points(samples, runs.size());
}

std::vector<CurvePoint> loss_curve(const Runs& runs) {
  std::map<double, Samples> samples;
  for (const RunSummary* run : runs)
    for (const trace::EpochRecord& epoch : run->log.epochs)
      if (!epoch.partial && std::isfinite(epoch.train_loss))
        samples[static_cast<double>(epoch.epoch)].values.push_back(epoch.train_loss);
  return common_points(samples, runs.size());
}

Lateness arrivals_of(const Runs& runs) {
  Lateness found;
  std::map<int, int64_t> last;
  std::map<int, std::vector<double>> late_ms;
  double waited = 0, waited_for_late = 0;
  for (const RunSummary* run : runs) {
    const auto& lines = run->log.arrivals;
    // The first line holds start-up costs; it is left out if there are others.
    for (size_t i = lines.size() > 1 ? 1 : 0; i < lines.size(); ++i) {
      const trace::ArrivalsRecord& line = lines[i];
      found.steps += line.steps;
      waited += line.waited_ms * static_cast<double>(line.steps);
      waited_for_late += line.waited_for_late_ms * static_cast<double>(line.steps);
      for (size_t k = 0; k < line.ranks.size() && k < line.last.size(); ++k) {
        last[line.ranks[k]] += line.last[k];
        if (k < line.late_ms.size()) late_ms[line.ranks[k]].push_back(line.late_ms[k]);
      }
    }
  }
  if (found.steps <= 0) return found;
  const auto steps = static_cast<double>(found.steps);
  found.waited_ms = waited / steps;
  found.waited_for_late_ms = waited_for_late / steps;
  const auto latest = std::max_element(
      last.begin(), last.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (latest == last.end()) return found;
  found.latest_rank = latest->first;
  found.latest_share = static_cast<double>(latest->second) / steps;
  found.latest_ms = median(late_ms[latest->first]);
  return found;
}

}  // namespace tutti::study
