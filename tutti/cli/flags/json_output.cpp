#include "tutti/cli/flags/json_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "tutti/base/json.h"

namespace tutti::cli {
namespace {

int kept_output = -1;  ///< the real standard output, while its number refers to the error output

}  // namespace

void keep_output_for_json() {
  std::fflush(stdout);
  kept_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept_output >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
}

void give_back_output() {
  if (kept_output < 0) return;
  std::fflush(stdout);  // output of other code
  dup2(kept_output, STDOUT_FILENO);
  close(kept_output);
  kept_output = -1;
}

void print_output(std::string_view text) {
  const bool kept = kept_output >= 0;
  give_back_output();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // an error stays in the stream, and end_process() reports it
  if (kept) keep_output_for_json();
}

void print_json_output(const Json& value, int indent) {
  print_output(print_json(value, indent) + "\n");
}

}  // namespace tutti::cli
