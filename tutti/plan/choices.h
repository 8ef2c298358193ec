#pragma once
// Choices made by measurement: which kernel for which problem, which layout. Made once (on rank 0),
// shown in the plan, kept in every checkpoint and reused by resumes and replays: another choice
// would sum in another order and give other bits.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tutti/backend/backend.h"

namespace tutti {

class Choices {
 public:
  /// Whose choices they are: why one that cannot be had here is an error. Of advice it is none.
  enum class Of { resumed_run, another_run, first_rank, advice };

  /// The recorded choice for a problem, or empty. Counts as used.
  std::string_view find(const std::string& problem);
  void record(const std::string& problem, std::string choice) {
    made_[problem] = {std::move(choice), true};
  }
  void forget(const std::string& problem) { made_.erase(problem); }
  /// From now on a choice that cannot be had here is made anew, with a warning; without this it is
  /// an error.
  void make_advice() { of_ = Of::advice; }
  bool binding() const { return of_ != Of::advice; }
  /// What a run would lose without a binding choice that cannot be had here, for the error.
  std::string_view loss() const;
  /// Advice, and of a network that has no training side: its parameters are plain in memory, so
  /// what was chosen for other layouts of them counts, too.
  void make_advice_of_training() {
    make_advice();
    any_layout_ = true;
  }
  /// With that, the choice for a problem that differs from this one in layouts of parameters alone;
  /// or empty. Counts as used.
  std::string_view find_alike(const KernelRequest& request);
  bool empty() const { return made_.empty(); }
  size_t size() const { return made_.size(); }
  /// Those that were found or recorded: what one program depends on, out of everything known about
  /// a machine.
  Choices used() const;
  /// One line a choice: PROBLEM <tab> CHOICE. parse throws ConfigError on anything else; what it
  /// reads is not used yet.
  std::string to_string() const;
  static Choices parse(std::string_view text, Of of = Of::resumed_run);
  /// Whether a text begins as to_string() does, and not as a file of another kind. An empty one
  /// does.
  static bool begin(std::string_view text);

 private:
  struct Entry {
    std::string choice;
    bool used = false;
  };
  std::map<std::string, Entry> made_;
  Of of_ = Of::resumed_run;
  bool any_layout_ = false;
};

/// How the problem of a graph's layout begins: "activation layout of graph 04bab6a885e5c274 ...".
inline constexpr std::string_view kLayoutProblem = "activation layout of graph ";

/// The problem that a request poses, as text: op, attributes, operands. Equal text = same kernel.
std::string problem_text(const KernelRequest& request);

/// The accepted candidate to use: the recorded one (recorded again, should it be found under
/// another problem), the only one, or the fastest measured (recorded then); without measuring the
/// first. Slow ones are considered only if none is fast. The oracle is taken only if nothing else
/// accepts. Throws DeviceError with all refusals if none accepts. `besides`: what a candidate costs
/// per run apart from its own time, in seconds.
const KernelCandidate& choose(const KernelRequest& request,
                              const std::vector<KernelCandidate>& candidates, bool measure,
                              Choices& choices,
                              const std::function<double(const KernelCandidate&)>& besides = {});

}  // namespace tutti
