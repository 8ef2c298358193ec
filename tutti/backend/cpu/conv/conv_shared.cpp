// Gradients of weights that the team shares, where no kernel shares them itself: each part adds up
// samples of its own.

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/base/error.h"

namespace tutti::backend {

namespace {

/// A gradient of weights that the team shares, in layouts without a shared kernel: each part adds
/// up samples of its own, if there are enough, and then a share of all sums.
class SamplesOfTeamKernel final : public Kernel {
 public:
  struct Problem {
    int64_t samples = 0;
    int team = 1;
    std::array<size_t, 2> sample_bytes{};  ///< bytes of a sample of x and of dy
  };
  using Kernels = std::map<int64_t, std::unique_ptr<Kernel>>;  ///< by number of samples
  SamplesOfTeamKernel(const Problem& problem, Kernels kernels)
      : p_(problem), kernels_(std::move(kernels)), any_(*kernels_.begin()->second),
        states_(static_cast<size_t>(p_.team)) {
    for (const auto& [samples, kernel] : kernels_)
      workspace_ = std::max(workspace_, workspace_part(kernel->workspace_bytes()));
  }
  size_t workspace_bytes() const override { return workspace_ + any_.state_bytes(); }

  /// Runs as one of all parts, or alone, and then does the work of all.
  void run(const KernelArgs& args) override {
    const bool alone = args.threads == 1;
    CHECK(alone || (args.threads == p_.team && args.team), "made for {} parts that meet, run by {}",
          p_.team, args.threads);
    for (int part = 0; part < p_.team; ++part)
      if (alone || part == args.thread) add_samples(args, samples_of(part), part == args.thread);
    if (args.team) args.team->meet();
    size_t states = 0;
    for (int part = 0; part < (alone ? 1 : p_.team); ++part)
      if (alone || samples_of(part).second > 0)
        states_[states++] =
            state_of(args, part, part == args.thread ? args.workspace : args.team->workspace(part));
    any_.finish({.in = args.in,
                 .out = args.out,
                 .states = {states_.data(), states},
                 .thread = args.thread,
                 .threads = args.threads,
                 .step = args.step});
  }

 private:
  /// First sample and number of samples. If samples are few, the first parts have one each: part 0
  /// adds in place.
  std::pair<int64_t, int64_t> samples_of(int part) const {
    if (p_.samples < p_.team) return {part, part < p_.samples ? 1 : 0};
    const auto [begin, end] = matrix::part_of(p_.samples, part, p_.team);
    return {begin, end - begin};
  }
  void* state_of(const KernelArgs& args, int part, void* workspace) const {
    const bool in_place = part == 0 && any_.state_output() == 0;
    return in_place ? args.out[0] : static_cast<std::byte*>(workspace) + workspace_;
  }
  void add_samples(const KernelArgs& args, std::pair<int64_t, int64_t> samples, bool opens) {
    if (samples.second == 0) return;
    std::array<void*, 2> in{};
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<std::byte*>(args.in[i]) +
              static_cast<size_t>(samples.first) * p_.sample_bytes[i];
    kernels_.at(samples.second)
        ->run({.in = in.data(),
               .out = args.out,
               .workspace = args.workspace,
               .state = state_of(args, args.thread, args.workspace),
               .first = opens,
               .first_sample = samples.first,
               .step = args.step});
  }

  Problem p_;
  Kernels kernels_;
  Kernel& any_;
  size_t workspace_ = 0;
  std::vector<void*> states_;
};

using Maker = std::function<std::unique_ptr<Kernel>()>;

/// Returns the candidates for that many samples of a gradient that is not shared.
KernelCandidates candidates_of_samples(KernelRequest request, int64_t samples) {
  for (TensorDesc& operand : request.in) operand.shape[0] = samples;
  return cpu_kernels().candidates(request);
}

void append_by_samples(const KernelRequest& request, const ops::ConvBackwardWeights& op,
                       KernelCandidates& candidates) {
  if (!op.whole() ||
      std::ranges::any_of(candidates, [](const KernelCandidate& c) { return c.refusal.empty(); }))
    return;
  KernelRequest alone = request;
  const ops::ConvBackwardWeights of_samples(op.conv(), op.w_shape());
  alone.op = &of_samples;
  const TensorDesc &x = request.in[0], &dy = request.in[1];
  const auto per_sample = [](const TensorDesc& t) {
    return t.bytes() / static_cast<size_t>(t.shape[0]);
  };
  const SamplesOfTeamKernel::Problem problem{
      x.shape[0], request.team, {per_sample(x), per_sample(dy)}};
  const int64_t most = matrix::parts_of(problem.samples, problem.team),
                least = problem.samples / problem.team;
  for (KernelCandidate& c : candidates_of_samples(alone, most)) {
    c.name += ", shared";
    c.in = request.in;
    std::map<int64_t, Maker> makers{{most, c.make}};
    for (KernelCandidate& other : candidates_of_samples(alone, std::max(least, int64_t{1})))
      if (other.name + ", shared" == c.name && other.out == c.out && least > 0)
        makers[least] = other.make;
    if (c.refusal.empty() && least > 0 && !makers.contains(least))
      c.refusal = "no kernel for fewer samples";
    if (c.refusal.empty())
      c.make = [problem, makers]() -> std::unique_ptr<Kernel> {
        SamplesOfTeamKernel::Kernels kernels;
        for (const auto& [samples, make] : makers) kernels[samples] = make();
        return std::make_unique<SamplesOfTeamKernel>(problem, std::move(kernels));
      };
    candidates.push_back(std::move(c));
  }
}

}  // namespace

void register_shared_conv(KernelTable& table) {
  table.add_adapter<ops::ConvBackwardWeights>(append_by_samples);
}

}  // namespace tutti::backend
