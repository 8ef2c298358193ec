#pragma once
// Checks the settings that a resumed run must share with the run it continues. The configuration's
// table defines for each key whether it may change (OnResume); the run's data are compared as well.

#include <string>
#include <vector>

#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/train/settings/run_data.h"

namespace tutti::train {

/// The name under which RunSettings hold data_identity() of all parts; --resume-anyway accepts it
/// like a key.
inline constexpr const char* kDataContent = "data.content";

/// The same for the way in which an epoch's order is made (data::kOrderName).
inline constexpr const char* kDataOrder = "data.order";

/// The same for model.library: the SHA-256 of the shared object. Absent without one.
inline constexpr const char* kLibraryContent = "model.library.content";

/// The same for the machine whose clock orders gradients that are applied one by one, and for the
/// buckets in which it sends them.
inline constexpr const char* kOrderMachine = "replay.machine.content";

/// For --resume-anyway alone: the kernels of the checkpoint, where this processor lacks one.
inline constexpr const char* kPlanChoices = "plan.choices";

/// Describes a run's data as a line of text, such as "10000 samples of u8 image 3x32x32, u8 label
/// in 10 classes, checksum 0123456789abcdef": a resumed run and all ranks of a job must have the
/// same data. The checksum covers all fields: all samples up to 64 MiB, and evenly spaced samples
/// of a larger set.
std::string data_identity(const data::Dataset& dataset);

/// Does the same for the statistics of all fields: "statistics 0123456789abcdef".
std::string statistics_identity(const data::Dataset& dataset);

/// Returns run.replicas of the run that wrote a checkpoint, as resolved: with a quorum all of them,
/// while CheckpointInfo::replicas are those whose gradients form a step.
int64_t replicas_of(const keep::CheckpointInfo& checkpoint);

/// Returns run_settings() with replicas, batch sizes, classes and the task as resolved, so that
/// equal results of different keys compare equal, and with the data as kDataContent and the library
/// as kLibraryContent.
config::RunSettings effective_settings(const config::RunConfig& config, int64_t replicas,
                                       const RunData& data);

/// Compares the settings of a checkpoint with this run's. Returns the changes, for the record:
/// "run.epochs: 2 -> 4". Throws ConfigError naming all keys that are fixed and differ and are not
/// in `anyway`, with both values and possible remedies.
std::vector<std::string> check_resume(const std::filesystem::path& checkpoint,
                                      const keep::CheckpointInfo& before,
                                      const config::RunSettings& here,
                                      const std::vector<std::string>& anyway);

/// Throws ConfigError for a word of --resume-anyway that is not a key, or may change anyway, and
/// for any word if `resume` (checkpoint.resume) is empty.
void check_resume_anyway(const std::vector<std::string>& keys, const std::string& resume);

}  // namespace tutti::train
