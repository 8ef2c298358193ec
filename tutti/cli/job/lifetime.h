#pragma once
// The work of a process before and after its verb: streams, signals, the launcher's death, the one
// line of an error, the exit code.

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

/// Prepares the process; main's first line. From here on
/// - a process that a launcher started ends when the launcher does, even if it is stopped;
/// - a closed stream is a stream that refuses bytes, not the number of the next file;
/// - signals that were blocked or ignored when the process was started are received, except SIGHUP
///   and SIGINT that were ignored; as many files may be open as the hard limit allows (2^20 at
///   most);
/// - `train`, and every rank, ends within seconds and with a line when a signal asks it to stop,
///   until it trains; and `train` continues after a closed pipe.
void begin_process(const std::vector<std::string>& arguments);

/// Returns the exit status of this process after its verb has returned `code`; main's last line. It
/// is 1, with a line, if the standard output has not taken all that was written to it; if that is a
/// pipe that nobody reads any more, the process ends by SIGPIPE without a line. A rank that `tutti
/// --ranks` started leaves its code to that process and ends with 0, for the launcher's sake.
int end_process(int code);

/// Prints the one line of an error, then ends the whole job: no other rank may wait for this one.
/// Errors that all ranks are likely to find are reported by rank 0 alone. Returns the exit code
/// where there is no job.
int fail(const std::exception& error);

/// Returns an error's text with the name of the rank that met it: "rank 1/2 on node07: ...". Errors
/// in flags or configuration are the same on all ranks, and name none.
std::string named(int rank, int ranks, int code, const std::string& text);

/// Writes to standard error, whether or not anybody can read it. Waits while the stream is full;
/// for a stream that must not block (O_NONBLOCK), at most five seconds.
void write_error(std::string_view text);

/// Returns "stopped by signal 15 (SIGTERM) before the first step: ...".
std::string stopped_early(int signal);

}  // namespace tutti::cli
