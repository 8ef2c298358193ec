#pragma once
// What happens in a process before its verb and after it: streams, signals, the launcher's death,
// the one line that an error leaves, the exit code.

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// main's first line. From here on
/// - a process that a launcher started ends when the launcher does, even if it is stopped;
/// - a closed stream is a stream that refuses bytes, not the number of the next file;
/// - signals that were blocked or ignored when the process was started are heard, but for SIGHUP
///   and SIGINT that were ignored; as many files may be open as the hard limit allows (2^20 at
///   most);
/// - `train`, and every rank, ends within seconds and with a line when a signal asks it to stop,
///   until it trains; and `train` outlives a closed pipe.
void begin_process(const std::vector<std::string>& arguments);

/// main's last line: the exit status of this process after its verb has returned `code`. 1, with a
/// line, when the standard output has not taken all that was written to it; where that is a pipe
/// that nobody reads any more, an end by SIGPIPE without a line. A rank that `tutti --ranks`
/// started leaves its code to that process and ends with 0, for the launcher's sake.
int end_process(int code);

/// The one line that an error leaves, then the end of the whole job: no other rank may wait for
/// this one. What all ranks are likely to find wrong is said by rank 0 alone. Returns the exit code
/// where there is no job.
int fail(const std::exception& error);

/// The text of an error with the name of the rank that met it: "rank 1/2 on node07: ...". What is
/// wrong with flags or configuration is so on all ranks, and names none.
std::string named(int rank, int ranks, int code, const std::string& text);

/// To standard error; whether anybody can read it does not matter. Waits while the stream is full;
/// a stream that is not to wait (O_NONBLOCK) gets five seconds.
void write_error(std::string_view text);

/// "stopped by signal 15 (SIGTERM) before the first step: ..."
std::string stopped_early(int signal);

}  // namespace tutti
