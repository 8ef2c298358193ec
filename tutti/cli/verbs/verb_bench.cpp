// tutti bench: the group of verbs that time something.

#include <fmt/format.h>
#include <unistd.h>

#include "tutti/base/error.h"
#include "tutti/cli/bench/bench_flags.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/result_file.h"

namespace tutti::cli {

Flag bench_threads_flag(int& threads) {
  return flag("--threads", "N", "Compute threads of a rank. 0: as train chooses", &threads, {0});
}

Flag bench_output_flag(std::string& output, const std::string& short_name) {
  return named_flag(Names::file, short_name.empty() ? "--output" : short_name + ",--output", "FILE",
                    "Write the results there as JSON, too", &output);
}

void check_output(comm::Communicator& communicator, const std::string& file) {
  if (file.empty()) return;
  comm::decide(communicator, "looking at the file for the results", [&] {
    const auto descriptor = keep::descriptor_named(file);
    if (descriptor && *descriptor > STDERR_FILENO && read_launcher().name != "none")
      throw ConfigError(
          fmt::format("{}: a rank that a launcher starts has other descriptors than the shell; "
                      "name a file, or /dev/stdout",
                      file));
    keep::check_result_file(file);
    return std::string();
  });
}

Verb bench_verb() {
  return {.name = "bench",
          .summary = "Time whole training steps, single operations, or collectives",
          .see_also = {"tutti help doctor", "docs/communication.md"},
          .verbs = {bench_step_verb(), bench_ops_verb(), bench_comm_verb()}};
}

}  // namespace tutti::cli
