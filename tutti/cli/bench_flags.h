#pragma once
// Flags that the verbs of `tutti bench` share.

#include <string>

#include "tutti/cli/flags.h"

namespace tutti {

Flag bench_threads_flag(int& threads);
Flag bench_output_flag(std::string& output);

}  // namespace tutti
