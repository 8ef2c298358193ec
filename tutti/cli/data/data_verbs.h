#pragma once
// The verbs of `tutti data` that lie here.

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

Verb data_generate_verb();
Verb data_stage_verb();
Verb data_fetch_verb();
/// The statistics of a configured data set, as data.statistics reads them.
Verb data_stats_verb();
/// Texts as token files.
Verb data_tokenize_verb();
/// Writes which categories of a configured click log have rows of their own, as data.vocabulary
/// reads it.
Verb data_vocabulary_verb();

}  // namespace tutti::cli
