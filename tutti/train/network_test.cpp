#include "tutti/train/network.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti {
namespace {

ModelSpec odd_images() {
  ModelSpec model;
  model.name = "resnet8";
  model.input = {3, 13, 8};
  model.width = 8;
  return model;
}

/// What each rank's plan depends on of what was measured.
std::vector<std::string> choices_of_ranks(int ranks, const std::vector<int64_t>& spatial,
                                          const PlanOptions& options) {
  std::vector<std::string> used(static_cast<size_t>(ranks));
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    const CpuBackend backend;
    SplitSettings split;
    split.grid = PartGrid(spatial, 1, ranks, communicator.rank());
    const auto network = compile_evaluation(odd_images(), split, backend, communicator, options);
    used[static_cast<size_t>(communicator.rank())] =
        network->plan.options.choices.used().to_string();
  });
  return used;
}

/// The lines of `some` that `all` lacks.
std::string missing(const std::string& some, const std::string& all) {
  std::istringstream lines(some);
  std::string lacking;
  for (std::string line; std::getline(lines, line);)
    if (all.find(line + '\n') == all.npos) lacking += line + '\n';
  return lacking;
}

/// Parts of 6 and of 7 rows have other problems, which no rank may decide for itself.
TEST(EvaluationNetwork, Rank0ChoosesForPartsOfOtherHeights) {
  const std::vector<std::string> used = choices_of_ranks(4, {2}, {});
  EXPECT_NE(missing(used[1], ""), "");
  for (const std::string& of_rank : used) EXPECT_EQ(missing(of_rank, used[0]), "");
}

/// What was chosen for training's layouts counts, and on all ranks alike.
TEST(EvaluationNetwork, AllRanksTakeWhatTrainingHasChosen) {
  std::string trained;
  comm::run_ranks(1, [&](comm::Communicator& communicator) {
    NetworkSpec spec;
    spec.training.model = odd_images();
    trained =
        compile_network(spec, CpuBackend(), communicator)->training.options.choices.to_string();
  });
  PlanOptions options;
  options.choices = Choices::parse(trained);
  options.choices.make_advice_of_training();
  const std::vector<std::string> used = choices_of_ranks(2, {}, options);
  EXPECT_NE(used[1], "");
  EXPECT_EQ(missing(used[1], used[0]), "");
}

}  // namespace
}  // namespace tutti
