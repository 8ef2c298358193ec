#pragma once
// Flags that the verbs of `tutti bench` share.

#include <string>

#include "tutti/cli/flags.h"

namespace tutti {

Flag bench_threads_flag(int& threads);
/// --output, with `short_name` ("-J") where it is not empty.
Flag bench_output_flag(std::string& output, const std::string& short_name = "");

}  // namespace tutti
