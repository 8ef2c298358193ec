#pragma once
// What a reader must know before believing a study's numbers, as sentences.

#include <string>

#include "tutti/study/metrics.h"

namespace tutti::study {

/// "1 rank", "4 ranks".
std::string ranks_words(int ranks);

/// Appends to result.notes; everything else of the result is complete.
void add_notes(StudyResult& result);

}  // namespace tutti::study
