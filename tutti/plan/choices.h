#pragma once
// Choices made by measurement: which kernel for which problem, which layout. Made once (on rank 0),
// shown in the plan, kept in every checkpoint and reused by resumes and replays: another choice
// would sum in another order and give other bits.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tutti/backend/backend.h"

namespace tutti::plan {

class Choices {
 public:
  /// Where the choices come from, which decides the error's reason if one is not available here.
  /// With advice that is no error.
  enum class Of { resumed_run, another_run, first_rank, advice };

  /// Returns the recorded choice for a problem, or empty. The choice then counts as used. Behind a
  /// tab it has the versions and the result of record_tried().
  std::string_view find(const std::string& problem);
  void record(const std::string& problem, std::string choice) {
    made_[problem] = {std::move(choice), true};
  }
  /// Records a kernel that was tried, or taken because others failed: its name means something with
  /// these versions of the device's libraries alone, and a plan made with them tries nothing again.
  void record_tried(const std::string& problem, const std::string& name,
                    const std::string& versions, std::string_view result);
  /// Returns the versions and the result of a choice that was recorded so, as one text, or empty.
  std::string_view trial(const std::string& problem) const;
  void forget(const std::string& problem) { made_.erase(problem); }
  /// From now on a choice that is not available here is made anew, with a warning, instead of
  /// raising an error.
  void make_advice() { of_ = Of::advice; }
  bool binding() const { return of_ != Of::advice; }
  /// Names what is lost if a binding choice is not available here, for the error message.
  std::string_view loss() const;
  /// Turns the choices into advice for a network without a training side. Its parameters are plain
  /// in memory, so choices made for other layouts of them count, too.
  void make_advice_of_training() {
    make_advice();
    any_layout_ = true;
  }
  /// Warns, the first time that it is called, that kernels were chosen with other versions.
  void warn_of_versions(std::string_view there, std::string_view here);
  /// After make_advice_of_training(), returns the choice for a problem that differs from this one
  /// only in the layouts of parameters, or empty. The choice then counts as used.
  std::string_view find_same(const backend::KernelRequest& request);
  bool empty() const { return made_.empty(); }
  size_t size() const { return made_.size(); }
  /// Returns the choices that were found or recorded: those that one program depends on, out of
  /// everything known about a machine.
  Choices used() const;
  /// Writes one line per choice: PROBLEM <tab> CHOICE. parse() throws ConfigError on anything else;
  /// the choices that it reads do not count as used yet.
  std::string to_string() const;
  static Choices parse(std::string_view text, Of of = Of::resumed_run);
  /// Whether a text begins like the output of to_string(), and not like another kind of file. An
  /// empty text does.
  static bool begin(std::string_view text);

 private:
  struct Entry {
    std::string choice;
    bool used = false;
  };
  std::map<std::string, Entry> made_;
  Of of_ = Of::resumed_run;
  bool any_layout_ = false, warned_ = false;
};

/// How the problem of a graph's layout begins: "activation layout of graph 04bab6a885e5c274 ...".
inline constexpr std::string_view kLayoutProblem = "activation layout of graph ";

/// Returns the problem that a request poses, as text: op, attributes, operands. Equal text = same
/// kernel.
std::string problem_text(const backend::KernelRequest& request);

/// Returns the accepted candidate to use: the recorded one (recorded again if it was found under
/// another problem; not if it was tried with other versions than the candidates have), the only
/// one, or the fastest measured (then recorded); without measuring, the first. Slow ones are
/// considered only if none is fast, the oracle only if nothing else accepts. Throws DeviceError
/// with all refusals if none accepts. `besides` gives a candidate's cost per run apart from its own
/// time, in seconds.
const backend::KernelCandidate& choose(
    const backend::KernelRequest& request, const std::vector<backend::KernelCandidate>& candidates,
    bool measure, Choices& choices,
    const std::function<double(const backend::KernelCandidate&)>& besides = {});

}  // namespace tutti::plan
