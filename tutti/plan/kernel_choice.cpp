#include "tutti/plan/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tutti/base/error.h"
#include "tutti/plan/step_problem.h"

namespace tutti::plan {
namespace {

/// Returns the seconds of packing weights per run of the candidate; packing is done once a step for
/// all samples.
double packing_seconds(const Step& step, const backend::KernelCandidate& candidate) {
  constexpr double kBytesASecond = 11e9;  // read and written, by one core of a busy team
  size_t bytes = 0;
  for (size_t i = 0; i < candidate.in.size(); ++i) {
    const TensorDesc& parameter = step.request.in[i];
    if (step.request.in_free[i] && !(candidate.in[i] == parameter))
      bytes += parameter.bytes() + candidate.in[i].bytes();
  }
  const int64_t tile = tile_of(step);
  const double runs = tile > 0 ? static_cast<double>(step.samples) / static_cast<double>(tile) : 1;
  return static_cast<double>(bytes) / kBytesASecond / runs;
}

/// Lists all sizes of tiles that the step has on that many threads.
std::set<int64_t> sizes_met(const Step& step, int threads) {
  std::set<int64_t> sizes;
  const int64_t tile = tile_of(step);
  if (tile == 0) return sizes;
  for (int t = 0; t < threads; ++t) {
    const int64_t share = share_of(step.samples, t, threads).size();
    const int tiles = tiles_of(share, tile);
    if (tiles == 0) sizes.insert(1);  // it still shares in the finish
    for (int i = 0; i < tiles; ++i) sizes.insert(share_of(share, i, tiles).size());
  }
  return sizes;
}

}  // namespace

backend::KernelCandidate KernelChooser::pick(Step& step) {
  step.request.team = options_.threads;
  std::vector<backend::KernelCandidate> candidates = backend_.candidates(step.request);
  for (backend::KernelCandidate& c : candidates)
    if (c.error > options_.most_error && c.refusal.empty())
      c.refusal = fmt::format(
          "its results are {:.1f} times as far from the exact ones as the definition's, and "
          "plan.bf16_error is {:g}",
          c.error, options_.most_error);
  try {
    const backend::KernelCandidate& chosen = *choose_tried(step, candidates);
    step.trial = options_.choices.trial(problem_text(step.request));
    step.kernel = chosen.name;
    step.speed = chosen.speed;
    for (const backend::KernelCandidate& c : candidates)
      if (&c != &chosen)
        step.refused.push_back(c.name + ": " +
                               (c.refusal.empty() ? "slower, or not first" : c.refusal));
    return chosen;
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("layer '{}': {}", step.name, error.what()));
  }
}

/// Refuses candidates that turn out not to be usable, until the best of the others is.
backend::KernelCandidate* KernelChooser::choose_tried(
    const Step& step, std::vector<backend::KernelCandidate>& candidates) {
  Choices& choices = options_.choices;
  const std::string problem = problem_text(step.request);
  std::string versions, failures;
  for (;;) {
    const backend::KernelCandidate& best =
        choose(step.request, candidates, options_.measure, choices,
               [&](const backend::KernelCandidate& c) { return packing_seconds(step, c); });
    backend::KernelCandidate* const taken =
        &candidates[static_cast<size_t>(&best - candidates.data())];
    if (const int64_t n = size_refused(step, *taken); n > 0) {
      taken->refusal = fmt::format("refuses a tile of {} samples in the layouts it asks for", n);
    } else if (taken->trial && choices.trial(problem).empty()) {
      const backend::KernelTrial trial = taken->trial();
      if (trial.refusal.empty()) {
        choices.record_tried(problem, taken->name, taken->versions, failures + trial.result);
        return taken;
      }
      taken->refusal = trial.refusal;
      versions = taken->versions;
      failures += fmt::format("{}: {}; ", taken->name, trial.refusal);
    } else {
      if (!failures.empty())
        choices.record_tried(problem, taken->name, versions, failures + "taken instead");
      return taken;
    }
    choices.forget(problem);
  }
}

/// Returns the size of a tile for which the candidate has no kernel once layouts are fixed; 0:
/// none. Shares of the batch may be cut into tiles of several sizes, and oneDNN may offer other
/// implementations for another size, or for a layout that it was free to choose before.
int64_t KernelChooser::size_refused(const Step& step,
                                    const backend::KernelCandidate& candidate) const {
  Step sized = step;
  sized.request.in = candidate.in;
  sized.request.out = candidate.out;
  sized.request.in_free.assign(candidate.in.size(), false);
  sized.request.out_free.assign(candidate.out.size(), false);
  for (const int64_t n : sizes_met(step, options_.threads))
    if (std::ranges::none_of(backend_.candidates(with_samples(sized, n)), [&](const auto& c) {
          return c.refusal.empty() && c.name == candidate.name;
        }))
      return n;
  return 0;
}

}  // namespace tutti::plan
