#pragma once
// Flags that the verbs of `tutti bench` share.

#include <string>

#include "tutti/cli/flags/flags.h"
#include "tutti/comm/communicator.h"

namespace tutti {

Flag bench_threads_flag(int& threads);
/// --output, with `short_name` ("-J") where it is not empty.
Flag bench_output_flag(std::string& output, const std::string& short_name = "");
/// Throws IoError on all ranks if rank 0 could not write `file`, when nothing has been measured
/// yet. Empty: none is wanted. Collective.
void check_output(comm::Communicator& communicator, const std::string& file);

}  // namespace tutti
