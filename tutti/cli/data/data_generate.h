#pragma once
// tutti data generate

#include "tutti/cli/flags/flags.h"

namespace tutti {

Verb data_generate_verb();

}  // namespace tutti
