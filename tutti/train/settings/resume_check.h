#pragma once
// What a resumed run must have in common with the run it continues. The table of the configuration
// says of each key whether it may change (OnResume); what data the run trains on is compared as
// well.

#include <string>
#include <vector>

#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/train/settings/run_data.h"

namespace tutti {

/// The name under which RunSettings keep data_identity() of all parts; --resume-anyway takes it as
/// it takes keys.
inline constexpr const char* kDataContent = "data.content";

/// Likewise how the order of an epoch is made (data::kOrderName).
inline constexpr const char* kDataOrder = "data.order";

/// Likewise of model.library: the SHA-256 of the shared object. Absent without one.
inline constexpr const char* kLibraryContent = "model.library.content";

/// Likewise of the machine whose clock orders gradients that are applied one by one, and of the
/// buckets that it sends them in.
inline constexpr const char* kOrderMachine = "replay.machine.content";

/// run.replicas of the run that wrote a checkpoint, as they were chosen: of a quorum all of them,
/// where CheckpointInfo::replicas are those whose gradients are a step.
int64_t replicas_of(const CheckpointInfo& checkpoint);

/// run_settings() with replicas, batch sizes, classes and the task as they were chosen, so that two
/// ways of asking for the same are the same, and with the data as kDataContent and the library as
/// kLibraryContent.
RunSettings effective_settings(const RunConfig& config, int64_t replicas, const RunData& data);

/// Compares the settings of a checkpoint with this run's. Returns what has changed, for the record:
/// "run.epochs: 2 -> 4". Throws ConfigError naming all keys that are fixed and differ and are not
/// in `anyway`, with both values and the ways out.
std::vector<std::string> check_resume(const std::filesystem::path& checkpoint,
                                      const CheckpointInfo& before, const RunSettings& here,
                                      const std::vector<std::string>& anyway);

/// Throws ConfigError for a word of --resume-anyway that is no key, one that may change anyway, and
/// for any where `resume` (checkpoint.resume) is empty.
void check_resume_anyway(const std::vector<std::string>& keys, const std::string& resume);

}  // namespace tutti
