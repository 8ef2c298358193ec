#pragma once
// tutti data stats: the statistics of a configured data set, as data.statistics reads them.

#include "tutti/cli/flags/flags.h"

namespace tutti {

Verb data_stats_verb();

}  // namespace tutti
