#pragma once
// tutti data generate

#include "tutti/cli/verbs.h"

namespace tutti {

Verb data_generate_verb();

}  // namespace tutti
