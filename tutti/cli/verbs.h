#pragma once
// The verbs of the binary. A verb declares its flags on its own CLI::App and returns what runs,
// after parsing, when it was chosen; that function returns the exit code (base/error.h) or throws.

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

using RunVerb = std::function<int()>;

RunVerb add_bench(CLI::App& verb);
RunVerb add_bench_comm(CLI::App& bench);  ///< a verb of `tutti bench`
RunVerb add_config(CLI::App& verb);
RunVerb add_data(CLI::App& verb);
RunVerb add_doctor(CLI::App& verb);
RunVerb add_eval(CLI::App& verb);
RunVerb add_model(CLI::App& verb);
RunVerb add_plan(CLI::App& verb);
RunVerb add_study(CLI::App& verb);
RunVerb add_train(CLI::App& verb);

}  // namespace tutti
