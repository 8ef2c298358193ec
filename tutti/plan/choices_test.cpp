#include "tutti/plan/choices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/ops/reorder.h"

namespace tutti::plan {
namespace {

const ops::Reorder kOp(DType::f32);

backend::KernelRequest request() {
  return {.op = &kOp, .in = {}, .out = {}, .in_free = {}, .out_free = {}};
}

/// Returns two candidates that accept. Neither is run, because nothing is measured here.
std::vector<backend::KernelCandidate> two_candidates() {
  std::vector<backend::KernelCandidate> candidates(2);
  candidates[0].name = "first";
  candidates[1].name = "second";
  return candidates;
}

class NoWork final : public backend::Kernel {
 public:
  void run(const backend::KernelArgs&) override {}
};

Choices recorded(const std::string& kernel) {
  return Choices::parse(problem_text(request()) + "\t" + kernel + "\n");
}

}  // namespace

TEST(Choices, ARecordedKernelIsTaken) {
  const auto candidates = two_candidates();
  Choices choices = recorded("second");
  EXPECT_EQ(choose(request(), candidates, false, choices).name, "second");
}

TEST(Choices, StaleOnesOfACheckpointAreAnErrorThoseOfATuningFileAreMadeAnew) {
  const auto candidates = two_candidates();
  Choices stale = recorded("gone");
  EXPECT_THROW(choose(request(), candidates, false, stale), ConfigError);
  stale.make_advice();
  EXPECT_EQ(choose(request(), candidates, false, stale).name, "first");
  EXPECT_EQ(stale.find(problem_text(request())), "first");
}

TEST(Choices, AStaleOneSaysWhatTheRunLoses) {
  const auto candidates = two_candidates();
  const auto failure = [&](Choices::Of of) -> std::string {
    Choices stale = Choices::parse(problem_text(request()) + "\tgone\n", of);
    return message_of<ConfigError>("", [&] { choose(request(), candidates, false, stale); });
  };
  const auto says = [](const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(says(failure(Choices::Of::resumed_run), "resuming would not give the same bits"));
  const std::string anew = failure(Choices::Of::another_run);
  EXPECT_TRUE(says(anew, "not have the bits of the one that plan.choices_from names")) << anew;
  EXPECT_FALSE(says(anew, "resuming")) << anew;
  EXPECT_TRUE(says(failure(Choices::Of::first_rank), "compute as the first one does"));
  EXPECT_EQ(failure(Choices::Of::advice), "");
}

TEST(Choices, ARecordedKernelThatIsRefusedSaysWhy) {
  auto candidates = two_candidates();
  candidates.push_back(candidates.front());
  candidates.back().name = "third";
  candidates.back().refusal = "it needs more than there is";
  Choices choices = recorded("third");
  EXPECT_TRUE(throws<ConfigError>({": it needs more than there is"},
                                  [&] { choose(request(), candidates, false, choices); }));
}

TEST(Choices, WithoutMeasuringASlowKernelIsTakenLast) {
  auto candidates = two_candidates();
  candidates[0].speed = backend::KernelSpeed::slow;
  Choices choices;
  EXPECT_EQ(choose(request(), candidates, false, choices).name, "second");
}

// A volume's first layer took minutes in the reference loops, although a fast kernel was available.
TEST(Choices, ASlowKernelIsNotMeasuredBesideAFastOne) {
  auto candidates = two_candidates();
  candidates[0].speed = backend::KernelSpeed::slow;
  candidates[0].make = []() -> std::unique_ptr<backend::Kernel> {
    throw DeviceError("it was run");
  };
  candidates[1].make = [] { return std::make_unique<NoWork>(); };
  Choices choices;
  EXPECT_EQ(choose(request(), candidates, true, choices).name, "second");
}

// In bf16, plain volumes have only such loops: trying a layout that is not taken cost many minutes.
TEST(Choices, SlowKernelsAreNotMeasuredBesideEachOther) {
  auto candidates = two_candidates();
  for (backend::KernelCandidate& c : candidates) {
    c.speed = backend::KernelSpeed::slow;
    c.make = []() -> std::unique_ptr<backend::Kernel> { throw DeviceError("it was run"); };
  }
  Choices choices;
  EXPECT_EQ(choose(request(), candidates, true, choices).name, "first");
}

// Packing weights for a kernel takes time outside of it.
TEST(Choices, WhatAKernelCostsBesidesItsRunCounts) {
  auto candidates = two_candidates();
  for (backend::KernelCandidate& c : candidates) c.make = [] { return std::make_unique<NoWork>(); };
  for (const char* dear : {"first", "second"}) {
    Choices choices;
    const std::string chosen =
        choose(request(), candidates, true, choices, [&](const backend::KernelCandidate& c) {
          return c.name == dear ? 1e6 : 0;
        }).name;
    EXPECT_NE(chosen, dear);
  }
}

/// Returns a kernel of ours and one of a library with these versions.
std::vector<backend::KernelCandidate> with_library(const std::string& versions) {
  auto candidates = two_candidates();
  candidates[1].versions = versions;
  return candidates;
}

TEST(Choices, ATrialIsKeptWithTheVersionsThatItHolds) {
  Choices made;
  made.record_tried(problem_text(request()), "second", "GPU, library 1", "agrees\tby\n1e-7");
  const std::string text = made.to_string();
  EXPECT_TRUE(text.ends_with("\tsecond\tGPU, library 1: agrees by 1e-7\n")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  Choices choices = Choices::parse(text);
  const auto same = with_library("GPU, library 1");
  EXPECT_EQ(choose(request(), same, false, choices).name, "second");
  EXPECT_EQ(choices.trial(problem_text(request())), "GPU, library 1: agrees by 1e-7");
  EXPECT_EQ(choices.to_string(), text);
  for (const std::string versions : {"GPU, library 10", "GPU, library 2", ""}) {
    choices = Choices::parse(text);
    const auto others = with_library(versions);
    EXPECT_EQ(choose(request(), others, false, choices).name, "first") << versions;
    EXPECT_EQ(choices.trial(problem_text(request())), "") << versions;
  }
  choices = Choices::parse(text);
  auto gone = same;
  gone[1].refusal = "not deterministic";
  gone.push_back(two_candidates()[0]);
  gone.back().name = "third";
  EXPECT_TRUE(throws<ConfigError>({"'second'", "not deterministic"},
                                  [&] { choose(request(), gone, false, choices); }));
}

TEST(Choices, AnotherTrialDoesNotStandWhereOneKernelIsLeft) {
  Choices choices;
  choices.record_tried(problem_text(request()), "second", "GPU, library 1", "agrees");
  auto alone = with_library("");
  alone.pop_back();
  EXPECT_EQ(choose(request(), alone, false, choices).name, "first");
  EXPECT_EQ(choices.trial(problem_text(request())), "");
}

/// The parameters of a network that is only evaluated are plain.
TEST(Choices, ThoseOfTrainingCountForOtherLayoutsOfParameters) {
  const auto with_layout = [](const Layout& layout) {
    backend::KernelRequest made = request();
    made.in = {
        {DType::f32, {2, 8, 4, 4}, {}}, {DType::f32, {8, 8, 3, 3}, layout}, {DType::f32, {8}, {}}};
    made.out = {{DType::f32, {2, 8, 4, 4}, {}}};
    made.in_free = {false, true, true};
    made.out_free = {false};
    return made;
  };
  const backend::KernelRequest plain = with_layout({}),
                               blocked = with_layout(Layout::blocked_channels(8));
  const auto candidates = two_candidates();
  const std::string known = problem_text(blocked) + "\tsecond\n";
  Choices choices = Choices::parse(known);
  EXPECT_EQ(choose(plain, candidates, false, choices).name, "first");
  choices = Choices::parse(known);
  choices.make_advice_of_training();
  EXPECT_EQ(choose(plain, candidates, false, choices).name, "second");
  // Another program that reads these choices takes it, too.
  Choices parsed = Choices::parse(choices.used().to_string());
  EXPECT_EQ(choose(plain, candidates, false, parsed).name, "second");
  backend::KernelRequest other = plain;
  other.in[0].layout = Layout::blocked_channels(8);  // an activation's: another problem
  EXPECT_EQ(choose(other, candidates, false, choices).name, "first");
  other = plain;
  other.in[1].shape = {8, 8, 1, 1};
  EXPECT_EQ(choose(other, candidates, false, choices).name, "first");
}

}  // namespace tutti::plan
