#pragma once
// The base of the checkpoint tests: a folder, and a function that writes checkpoints into it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tutti/base/scratch_directory.h"
#include "tutti/keep/checkpoint.h"

namespace tutti::keep {

class CheckpointTest : public testing::Test {
 protected:
  /// Writes a checkpoint whose tensors hold `step`.
  std::filesystem::path write(int64_t step, int keep = 0, bool best = false) {
    const auto bytes = std::vector<std::byte>(4000, static_cast<std::byte>(step));
    const NamedTensor w{"conv1.weight", {DType::f32, {10, 100}, {}}, bytes};
    const NamedTensor m{"conv1.weight.momentum", {DType::f32, {1000}, {}}, bytes};
    return write_checkpoint(directory_, {info(step), {w.ref()}, {m.ref()}, best}, keep);
  }
  static CheckpointInfo info(int64_t step) {
    return {.step = step,
            .epoch = 2,
            .epoch_position = 7,
            .seed = ~uint64_t{0},
            .replicas = 4,
            .ranks = 2,
            .precision = "bf16",
            .plan_choices = "conv1 onednn\nlayer1 \"x\"",
            .config = "[run]\nseed = 1\n",
            .run_id = "20240501-120000-7f3a9c",
            .optimizer = "sgd",
            .state_kinds = {"momentum"},
            .settings = {{"run.seed", "1"}},
            .metrics = {{"loss", 0.1}, {"lost", NAN}},
            .learned = {{"mask", {48, 64}, 3}, {"age"}}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static void flip_a_bit(const std::filesystem::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char c = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(c ^ 1));
  }

  const ScratchDirectory scratch_;
  const std::filesystem::path directory_ = scratch_.path() / "checkpoints";
};

}  // namespace tutti::keep
