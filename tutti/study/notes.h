#pragma once
// Writes the sentences that a reader must know before believing a study's numbers.

#include <functional>
#include <string>

#include "tutti/study/metrics.h"
#include "tutti/study/run_folder.h"

namespace tutti::study {

/// Returns "1 rank", "4 ranks".
std::string ranks_words(int ranks);

/// A function that reads a resolved configuration.
using ReadConfiguration = std::function<Configuration(const std::string& path)>;

/// Notes, first of all, every key in which the configurations of usable runs differ although their
/// results or times depend on it. A study varies ranks and seeds, and the batches between sizes, so
/// these do not count.
void note_configurations(StudyResult& result, const ReadConfiguration& read,
                         const ChangeRule& rule);

/// Returns the machine's other work during a whole run, from its lines, weighted by their duration.
trace::MachineUse machine_of(const trace::RunLog& log);

/// Appends to result.disturbances and notes; everything else in the result must be complete.
void add_notes(StudyResult& result);

/// Returns disturbances, then notes.
std::vector<std::string> all_notes(const StudyResult& result);

}  // namespace tutti::study
