#pragma once
// tutti data vocabulary: writes which categories of a configured click log have rows of their own,
// as data.vocabulary reads it.

#include "tutti/cli/flags/flags.h"

namespace tutti {

Verb data_vocabulary_verb();

}  // namespace tutti
