#include "tutti/plan/choices.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "tutti/base/log.h"
#include "tutti/plan/kernel_timer.h"

namespace tutti::plan {
namespace {

std::string heading_of(const backend::KernelRequest& request) {
  std::string text(request.op->name());
  if (const std::string attributes = request.op->attributes(); !attributes.empty())
    text += " {" + attributes + "}";
  return text;
}

std::string results_of(const backend::KernelRequest& request) {
  std::string text = " ->";
  for (const TensorDesc& desc : request.out) text += " " + desc.to_string();
  return text;
}

/// A choice is a name and, where it was tried, a tab and the trial.
std::string_view name_in(std::string_view choice) { return choice.substr(0, choice.find('\t')); }

std::string_view after_tab(std::string_view choice) {
  return choice.substr(std::min(choice.find('\t'), choice.size() - 1) + 1);
}

}  // namespace

std::string_view Choices::find(const std::string& problem) {
  const auto at = made_.find(problem);
  if (at == made_.end()) return {};
  at->second.used = true;
  return at->second.choice;
}

void Choices::record_tried(const std::string& problem, const std::string& name,
                           const std::string& versions, std::string_view result) {
  std::string choice = fmt::format("{}\t{}: {}", name, versions, result);
  for (char& c : std::span(choice).subspan(name.size() + 1))
    if (c == '\t' || c == '\n') c = ' ';
  record(problem, std::move(choice));
}

std::string_view Choices::trial(const std::string& problem) const {
  const auto at = made_.find(problem);
  return at == made_.end() ? std::string_view() : after_tab(at->second.choice);
}

void Choices::warn_of_versions(std::string_view there, std::string_view here) {
  if (std::exchange(warned_, true)) return;
  log::warn(
      "kernels of libraries were chosen for {}; here is {}: they are chosen anew, and results may "
      "be rounded otherwise",
      there, here.empty() ? "no such library" : here);
}

namespace {

/// Splits the text of a problem where a parameter's layout stands, or would stand if it were not
/// plain.
std::vector<std::string> pieces_around_layouts(const backend::KernelRequest& request) {
  std::vector<std::string> pieces(1);
  pieces.back() = heading_of(request);
  for (size_t i = 0; i < request.in.size(); ++i) {
    TensorDesc desc = request.in[i];
    const bool is_free = i < request.in_free.size() && request.in_free[i];
    if (is_free) desc.layout = Layout::plain();
    pieces.back() += " " + desc.to_string();
    if (is_free) pieces.emplace_back();
  }
  pieces.back() += results_of(request);
  return pieces;
}

/// Whether `text` is the pieces with nothing or one word between neighbours.
bool fits(std::string_view text, const std::vector<std::string>& pieces) {
  if (!text.starts_with(pieces.front())) return false;
  text.remove_prefix(pieces.front().size());
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (!text.starts_with(pieces[i])) {
      if (!text.starts_with(' ')) return false;
      text.remove_prefix(std::min(text.find(' ', 1), text.size()));
      if (!text.starts_with(pieces[i])) return false;
    }
    text.remove_prefix(pieces[i].size());
  }
  return text.empty();
}

}  // namespace

std::string_view Choices::find_same(const backend::KernelRequest& request) {
  if (!any_layout_) return {};
  const std::vector<std::string> pieces = pieces_around_layouts(request);
  for (auto& [problem, entry] : made_)
    if (fits(problem, pieces)) {
      entry.used = true;
      return entry.choice;
    }
  return {};
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

std::string_view Choices::loss() const {
  switch (of_) {
    case Of::another_run:
      return "this run would not have the bits of the one that plan.choices_from names; without "
             "that key it chooses anew";
    case Of::first_rank: return "all ranks must compute as the first one does";
    case Of::resumed_run:
    case Of::advice: break;  // advice that cannot be had is no loss
  }
  return "resuming would not give the same bits; it does on the kind of processor that the run "
         "began "
         "on, and --resume-anyway plan.choices goes on here with other kernels";
}

Choices Choices::parse(std::string_view text, Of of) {
  Choices choices;
  choices.of_ = of;
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

bool Choices::begin(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::string_view problem = line.substr(0, line.find('\t'));
  return text.empty() || (problem.size() < line.size() && (problem.starts_with(kLayoutProblem) ||
                                                           problem.find(" -> ") != problem.npos));
}

std::string problem_text(const backend::KernelRequest& request) {
  std::string text = heading_of(request);
  for (const TensorDesc& desc : request.in) text += " " + desc.to_string();
  return text + results_of(request);
}

namespace {

/// Returns text like ": it needs AVX-512"; empty if the candidate was not refused.
std::string why_refused(const std::vector<backend::KernelCandidate>& candidates,
                        std::string_view name) {
  const auto at = std::ranges::find(candidates, name, &backend::KernelCandidate::name);
  return at == candidates.end() || at->refusal.empty() ? std::string() : ": " + at->refusal;
}

/// Whether a trial was made with other versions than the candidates have; warns of that.
bool is_of_other_versions(std::string_view trial, Choices& choices,
                          const std::vector<backend::KernelCandidate>& candidates) {
  if (trial.empty()) return false;
  std::string_view here;
  for (const backend::KernelCandidate& c : candidates)
    if (!c.versions.empty()) here = c.versions;
  if (!here.empty() && trial.starts_with(fmt::format("{}: ", here))) return false;
  choices.warn_of_versions(trial.substr(0, trial.find(": ")), here);
  return true;
}

}  // namespace

const backend::KernelCandidate& choose(
    const backend::KernelRequest& request, const std::vector<backend::KernelCandidate>& candidates,
    bool measure, Choices& choices,
    const std::function<double(const backend::KernelCandidate&)>& besides) {
  std::vector<const backend::KernelCandidate*> accepted;
  std::string refusals;
  for (const backend::KernelCandidate& candidate : candidates) {
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
    std::erase_if(accepted, [](const auto* c) { return c->speed == backend::KernelSpeed::oracle; });
  if (is_of_other_versions(choices.trial(problem), choices, candidates)) choices.forget(problem);
  if (accepted.size() == 1) return *accepted.front();
  std::string_view recorded = choices.find(problem);
  if (recorded.empty()) recorded = choices.find_same(request);
  if (!recorded.empty() && !is_of_other_versions(after_tab(recorded), choices, candidates)) {
    const std::string choice(recorded);
    recorded = name_in(choice);
    for (const auto* c : accepted)
      if (c->name == recorded) {
        choices.record(problem, choice);  // it may be another problem's
        return *c;
      }
    if (choices.binding())
      throw ConfigError(fmt::format("the recorded kernel '{}' for {} is not available here: {}{}",
                                    recorded, problem, choices.loss(),
                                    why_refused(candidates, recorded)));
    log::warn(
        "a measurement of earlier names the kernel '{}', which is not available here{}; {} is "
        "chosen anew",
        recorded, why_refused(candidates, recorded), problem);
  }
  // Measuring reference loops over a volume would take minutes, even against each other.
  const bool any_fast = std::ranges::find(accepted, backend::KernelSpeed::fast,
                                          &backend::KernelCandidate::speed) != accepted.end();
  if (any_fast)
    std::erase_if(accepted, [](const auto* c) { return c->speed != backend::KernelSpeed::fast; });
  if (!measure || !any_fast || accepted.size() == 1) {
    const backend::KernelCandidate& taken = *accepted.front();
    choices.record(problem, taken.name);  // so that a resume which measures keeps to it
    return taken;
  }
  const backend::KernelCandidate* fastest = nullptr;
  double best = std::numeric_limits<double>::infinity();
  KernelTimer timer(request);
  for (const auto* c : accepted) {
    const double seconds = timer.seconds(*c, best) + (besides ? besides(*c) : 0);
    if (seconds < best) best = seconds, fastest = c;
  }
  choices.record(problem, fastest->name);
  return *fastest;
}

}  // namespace tutti::plan
