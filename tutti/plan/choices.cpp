#include "tutti/plan/choices.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "tutti/base/log.h"
#include "tutti/base/rng.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti {
namespace {

/// Random values for an operand: timing on zeros would flatter caches and clocks.
void fill_random(const TensorDesc& desc, void* data, uint64_t stream) {
  Rng rng(1, Purpose::test, stream);
  const auto count = static_cast<size_t>(desc.layout.storage_elements(desc.shape));
  for (size_t i = 0; i < count; ++i) {
    const float value = rng.uniform() + 0.01f;
    switch (desc.dtype) {
      case DType::f32: static_cast<float*>(data)[i] = value; break;
      case DType::bf16: static_cast<bf16*>(data)[i] = bf16(value); break;
      case DType::i32: static_cast<int32_t*>(data)[i] = 0; break;
      case DType::u8: static_cast<uint8_t*>(data)[i] = 0; break;
    }
  }
}

}  // namespace

std::string_view Choices::find(const std::string& problem) {
  const auto at = made_.find(problem);
  if (at == made_.end()) return {};
  at->second.used = true;
  return at->second.choice;
}

Choices Choices::used() const {
  Choices choices;
  for (const auto& [problem, entry] : made_)
    if (entry.used) choices.made_.emplace(problem, entry);
  return choices;
}

std::string Choices::to_string() const {
  std::string text;
  for (const auto& [problem, entry] : made_) text += problem + '\t' + entry.choice + '\n';
  return text;
}

Choices Choices::parse(std::string_view text) {
  Choices choices;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t tab = line.find('\t');
    if (tab == line.npos)
      throw ConfigError(fmt::format("recorded kernel choices: line without a tab: '{}'", line));
    choices.made_[std::string(line.substr(0, tab))] = {std::string(line.substr(tab + 1)), false};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return choices;
}

std::string problem_text(const KernelRequest& request) {
  std::string text(request.op->name());
  if (const std::string attributes = request.op->attributes(); !attributes.empty())
    text += " {" + attributes + "}";
  for (const TensorDesc& desc : request.in) text += " " + desc.to_string();
  text += " ->";
  for (const TensorDesc& desc : request.out) text += " " + desc.to_string();
  return text;
}

double time_kernel(const KernelRequest& request, const KernelCandidate& candidate) {
  const std::unique_ptr<Kernel> kernel = candidate.make();
  std::vector<Buffer> buffers;
  std::vector<void*> in, out;
  for (const TensorDesc& desc : candidate.in) {
    in.push_back(buffers.emplace_back(desc.bytes()).data());
    fill_random(desc, in.back(), buffers.size());
  }
  for (const TensorDesc& desc : candidate.out)
    out.push_back(buffers.emplace_back(desc.bytes()).data());
  Buffer workspace(kernel->workspace_bytes()), state(kernel->state_bytes());
  const StepInfo step{
      .batch = request.in.empty() || request.in[0].shape.rank() == 0 ? 1 : request.in[0].shape[0]};
  const KernelArgs args{.in = in.data(),
                        .out = out.data(),
                        .workspace = workspace.data(),
                        .state = state.data(),
                        .step = &step};

  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int run = 0; run < 12 && (run < 4 || total < 2e-3); ++run) {
    const auto start = Clock::now();
    kernel->run(args);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    total += seconds;
    if (run > 0) best = std::min(best, seconds);
  }
  return best;
}

bool is_slow_kernel(std::string_view name) {
  return name == "reference" || name.find("onednn:ref") != name.npos;  // or widened
}

const KernelCandidate& choose(const KernelRequest& request,
                              const std::vector<KernelCandidate>& candidates, bool measure,
                              Choices& choices) {
  std::vector<const KernelCandidate*> accepted;
  std::string refusals;
  for (const KernelCandidate& candidate : candidates) {
    if (candidate.refusal.empty())
      accepted.push_back(&candidate);
    else
      refusals += fmt::format("\n  {}: {}", candidate.name, candidate.refusal);
  }
  const std::string problem = problem_text(request);
  if (accepted.empty())
    throw DeviceError(
        fmt::format("no kernel for {}{}", problem,
                    refusals.empty() ? std::string(": no backend knows this op") : refusals));
  if (accepted.size() > 1)
    std::erase_if(accepted, [](const auto* c) { return c->name == "reference"; });
  if (accepted.size() == 1) return *accepted.front();
  if (const std::string_view recorded = choices.find(problem); !recorded.empty()) {
    for (const auto* c : accepted)
      if (c->name == recorded) return *c;
    if (choices.binding())
      throw ConfigError(
          fmt::format("the recorded kernel '{}' for {} is not available here: resuming would not "
                      "give the same bits",
                      recorded, problem));
    log::warn(
        "a measurement of earlier names the kernel '{}', which is not available here; {} is chosen "
        "anew",
        recorded, problem);
  }
  if (!measure) {
    const auto quick = std::ranges::find_if(
        accepted, [](const KernelCandidate* c) { return !is_slow_kernel(c->name); });
    const KernelCandidate& taken = quick == accepted.end() ? *accepted.front() : **quick;
    choices.record(problem, taken.name);  // so that a resume which measures keeps to it
    return taken;
  }
  const KernelCandidate* fastest = nullptr;
  double best = std::numeric_limits<double>::infinity();
  for (const auto* c : accepted)
    if (const double seconds = time_kernel(request, *c); seconds < best)
      best = seconds, fastest = c;
  choices.record(problem, fastest->name);
  return *fastest;
}

}  // namespace tutti
