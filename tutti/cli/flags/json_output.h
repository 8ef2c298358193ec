#pragma once
// With --json the standard output is JSON and nothing else: output of libraries, such as oneDNN
// with ONEDNN_VERBOSE, goes to the error output.

#include <string_view>

#include "tutti/base/json_forward.h"

namespace tutti::cli {

/// Redirects output from here on until the end of the process, or until give_back_output(). Without
/// a free descriptor nothing is redirected. All functions here: one thread at a time.
void keep_output_for_json();

/// Restores the standard output for programs that this one starts, which redirect it themselves.
void give_back_output();

/// Writes `text` unchanged and at once to the original standard output.
void print_output(std::string_view text);

/// Writes a value and the end of its line. indent < 0: on one line.
void print_json_output(const Json& value, int indent = 2);

}  // namespace tutti::cli
