#pragma once
// model.library: a shared object that adds models and metrics of its own. train/workload.h and
// docs/own_workload.md say how to make one.

#include <string>
#include <string_view>

#include "tutti/config/config.h"

namespace tutti::cli {

/// Loads the library that `model` names, if it names one, and fills model.library_content. Call it
/// before any other thread starts; the object stays loaded, and a second call with the same file
/// does nothing more. Throws ConfigError naming key and file where there is no file, it is no
/// shared object, was built against another Tutti, needs symbols that this program does not have,
/// registers nothing, or registers an existing name.
void load_library(config::ModelSection& model);

/// Returns why a file with these bytes cannot be a workload of this program; empty: it can.
std::string refusal_of_library(std::string_view bytes);

}  // namespace tutti::cli
