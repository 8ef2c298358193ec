#pragma once
// model.library: a shared object that brings models and metrics of its own. How one is made is said
// in train/workload.h and docs/own_workload.md.

#include <string>
#include <string_view>

#include "tutti/config/config.h"

namespace tutti {

/// Loads the library that `model` names, if it names one, and fills model.library_content. Before
/// any other thread; the object stays loaded, and a second call with the same file does nothing
/// more. ConfigError naming key and file where there is none, it is no shared object, was built
/// against another Tutti, needs what this program does not have, or registers nothing or a name
/// that there is.
void load_library(ModelSection& model);

/// Why a file with these bytes cannot be a workload of this program; empty: it can.
std::string refusal_of_library(std::string_view bytes);

}  // namespace tutti
