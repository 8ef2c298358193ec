#pragma once
// The enumerations of a configuration and the words that stand for their values.

#include <array>
#include <string_view>

#include "tutti/base/log.h"
#include "tutti/comm/on_timeout.h"
#include "tutti/ops/losses.h"
#include "tutti/split/stages.h"
#include "tutti/sync/meeting.h"

namespace tutti::config {

enum class Precision { fp32, bf16, tf32 };
enum class DeviceKind { cpu, cuda, emulated };
/// The model's own; zero-padded identity; 1x1 convolution (He et al. 2015, section 4.2).
enum class Shortcut { automatic, A, B };
enum class ModelTask { automatic, classify, segment, regress, language };
enum class OptimizerKind { sgd, lars, adam, adamw, lamb, rmsprop };
enum class ScheduleKind { constant, steps, cosine, one_cycle, polynomial, plateau, inverse_sqrt };
enum class Annealing { cosine, linear };
enum class ActivationLayout { automatic, b16c, last, plain };
enum class MilestoneUnit { steps, epochs };
enum class WarmupRise { steps, epochs };
enum class Shuffle { global, shard };
enum class TextTokens { characters, bytes };
enum class TextWindows { ordered, random };
enum class SeedPoints { peaks, grid };
enum class BatchScaling { none, linear, sqrt };

/// The words of each enumeration in a configuration, in the order of its values.
constexpr std::array<std::string_view, 3> words(Precision) { return {"fp32", "bf16", "tf32"}; }
constexpr std::array<std::string_view, 3> words(DeviceKind) { return {"cpu", "cuda", "emulated"}; }
constexpr std::array<std::string_view, 3> words(Shortcut) { return {"auto", "A", "B"}; }
constexpr std::array<std::string_view, 5> words(ModelTask) {
  return {"auto", "classify", "segment", "regress", "language"};
}
constexpr std::array<std::string_view, 2> words(ops::MeanOver) { return {"weights", "labels"}; }
constexpr std::array<std::string_view, 4> words(ops::PointwiseLossKind) {
  return {"mse", "mae", "huber", "bce_with_logits"};
}
constexpr std::array<std::string_view, 6> words(OptimizerKind) {
  return {"sgd", "lars", "adam", "adamw", "lamb", "rmsprop"};
}
constexpr std::array<std::string_view, 7> words(ScheduleKind) {
  return {"constant", "steps", "cosine", "one_cycle", "polynomial", "plateau", "inverse_sqrt"};
}
constexpr std::array<std::string_view, 2> words(Annealing) { return {"cosine", "linear"}; }
constexpr std::array<std::string_view, 4> words(ActivationLayout) {
  return {"auto", "b16c", "last", "plain"};
}
constexpr std::array<std::string_view, 2> words(MilestoneUnit) { return {"steps", "epochs"}; }
constexpr std::array<std::string_view, 2> words(WarmupRise) { return {"steps", "epochs"}; }
constexpr std::array<std::string_view, 2> words(TextTokens) { return {"characters", "bytes"}; }
constexpr std::array<std::string_view, 2> words(TextWindows) { return {"ordered", "random"}; }
constexpr std::array<std::string_view, 2> words(Shuffle) { return {"global", "shard"}; }
constexpr std::array<std::string_view, 2> words(SeedPoints) { return {"peaks", "grid"}; }
constexpr std::array<std::string_view, 3> words(sync::MetState) {
  return {"keep", "average", "reset"};
}
constexpr std::array<std::string_view, 3> words(sync::OuterStep) {
  return {"none", "momentum", "nesterov"};
}
constexpr std::array<std::string_view, 3> words(sync::MixingGraph) {
  return {"ring", "torus", "exponential"};
}
constexpr std::array<std::string_view, 2> words(split::PipelineOrder) { return {"1f1b", "gpipe"}; }
constexpr std::array<std::string_view, 3> words(BatchScaling) { return {"none", "linear", "sqrt"}; }
constexpr std::array<std::string_view, 5> words(log::Level) {
  return {"error", "warn", "info", "debug", "trace"};
}
constexpr std::array<std::string_view, 2> words(comm::OnTimeout) { return {"abort", "continue"}; }

/// The kind of path that a key holds, which decides where a relative path starts.
enum class PathKind {
  none,
  read,    ///< given in a file: that file's folder; by a flag or a variable: the working folder
  data,    ///< data.dir; where that is empty, as for `read`
  written  ///< the working folder
};

/// Returns the word of an enumeration's value: to_string(Precision::bf16) == "bf16".
template <class E>
constexpr auto to_string(E value) -> typename decltype(words(value))::value_type {
  return words(value)[static_cast<size_t>(value)];
}

}  // namespace tutti::config
