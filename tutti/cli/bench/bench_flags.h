#pragma once
// Flags that the verbs of `tutti bench` share.

#include <string>

#include "tutti/cli/flags/flags.h"
#include "tutti/comm/communicator.h"

namespace tutti::cli {

Flag bench_threads_flag(int& threads);
/// Returns the flag --output, with `short_name` ("-J") where it is not empty.
Flag bench_output_flag(std::string& output, const std::string& short_name = "");
/// Throws IoError on all ranks if rank 0 cannot write `file`, before anything is measured. Empty:
/// no file is wanted. Collective.
void check_output(comm::Communicator& communicator, const std::string& file);

}  // namespace tutti::cli
