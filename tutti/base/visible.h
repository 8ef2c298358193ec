#pragma once
// Texts of others on a terminal: names of folders, lines of records and URLs may hold bytes that a
// terminal obeys. They are shown instead, as \x1b.

#include <cstdio>
#include <string>
#include <string_view>

namespace tutti {

/// `text` with every byte as \xNN that belongs to a control character (C0 but for the line break
/// and the tab, DEL, C1), to one that changes the direction or the lines of a text (U+202E and its
/// kin), or to no character of UTF-8.
std::string visible(std::string_view text);
/// The same of a text that comes in pieces, which may end within a character.
class VisiblePieces {
 public:
  std::string take(std::string_view piece);
  /// No more comes: what was cut off.
  std::string rest();

 private:
  std::string kept_;
};
/// The same characters as \uNNNN, as JSON and TOML write them in strings. Other bytes stay.
std::string with_unicode_escapes(std::string_view text);

/// From now on visible() stands between stdout and stderr and their descriptors, whoever writes to
/// them. Once, before another thread or any output. exit(3) shows what the end of all output has
/// cut off of a character.
void make_output_visible();
/// Where stdout is no terminal, its bytes stay as they are from now on: for a verb whose output is
/// a text that a file or a program takes.
void keep_bytes_of_output();
/// stderr without visible(), for this program's own control sequences beside texts that have been
/// made visible. Before make_output_visible() it is stderr.
std::FILE* plain_errors();

/// Writes bytes as they are, however many calls that takes; false where the descriptor refuses
/// them, with errno. May be called by a handler of signals.
bool write_output(int descriptor, std::string_view text);
/// From now on output that nobody takes for two seconds is dropped (a paused terminal or pager, a
/// stalled collector), for a process that was asked to end must not wait for it. For handlers, too.
void hurry_output() noexcept;

}  // namespace tutti
