#pragma once
// What a reader must know before believing a study's numbers, as sentences.

#include <functional>
#include <string>

#include "tutti/study/metrics.h"
#include "tutti/study/run_folder.h"

namespace tutti::study {

/// "1 rank", "4 ranks".
std::string ranks_words(int ranks);

/// What reads a resolved configuration, and what a difference in it means.
using ReadConfiguration = std::function<Configuration(const std::string& path)>;

/// Notes, before all else, every key in which the configurations of usable runs differ, although
/// their results or times depend on it. Ranks and seeds are what a study varies, and so are the
/// batches between sizes.
void note_configurations(StudyResult& result, const ReadConfiguration& read,
                         const ChangeRule& rule);

/// The machine's work beside a whole run, from its lines: each counts as long as it is.
MachineUse machine_of(const RunLog& log);

/// Appends to result.disturbances and notes; everything else of the result is complete.
void add_notes(StudyResult& result);

/// Disturbances, then notes.
std::vector<std::string> all_notes(const StudyResult& result);

}  // namespace tutti::study
