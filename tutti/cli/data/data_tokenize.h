#pragma once
// tutti data tokenize: texts as token files.

#include "tutti/cli/flags/flags.h"

namespace tutti {

Verb data_tokenize_verb();

}  // namespace tutti
