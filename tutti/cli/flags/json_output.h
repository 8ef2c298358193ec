#pragma once
// With --json the standard output is JSON and nothing else: what libraries print there, as oneDNN
// does with ONEDNN_VERBOSE, goes to the error output.

#include <string_view>

#include "tutti/base/json_forward.h"

namespace tutti {

/// From here on until the end of the process, or until give_back_output(). Without a free
/// descriptor nothing is redirected. All functions here: one thread at a time.
void keep_output_for_json();

/// For programs that this one starts, which say it themselves.
void give_back_output();

/// `text` as it is, at once: to the standard output as it was at the start.
void print_output(std::string_view text);

/// A value and the end of its line. indent < 0: on one line.
void print_json_output(const Json& value, int indent = 2);

}  // namespace tutti
