// A user's program: builds a network, counts its parameters, and provokes a typed error. Exit
// status 0 if all is as documented.
#include <cstdio>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"

int main() {
  const tutti::models::ModelGraph model = tutti::models::build_model({.name = "resnet44"});
  std::printf("resnet44: %lld parameters\n", static_cast<long long>(model.graph.parameter_count()));
  if (model.graph.parameter_count() != 658586) return 1;
  try {
    tutti::models::find_model("resnet43");
  } catch (const tutti::ConfigError& error) {
    return error.exit_code() == tutti::ExitCode::usage ? 0 : 1;
  }
  return 1;
}
