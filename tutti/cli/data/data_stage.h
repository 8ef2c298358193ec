#pragma once
// tutti data stage, tutti data fetch

#include "tutti/cli/flags/flags.h"

namespace tutti {

Verb data_stage_verb();
Verb data_fetch_verb();

}  // namespace tutti
