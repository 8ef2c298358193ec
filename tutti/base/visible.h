#pragma once
// Makes texts of others safe to show on a terminal: names of folders, lines of records and URLs may
// hold bytes that a terminal obeys. They are shown as \x1b and the like.

#include <cstdio>
#include <string>
#include <string_view>

namespace tutti {

/// Returns `text` with each byte as \xNN that belongs to a control character (C0 except line break
/// and tab, DEL, C1), to a character that changes a text's direction or lines (U+202E and its kin),
/// or to no character of UTF-8.
std::string visible(std::string_view text);
/// Does the same for a text that comes in pieces, which may end within a character.
class VisiblePieces {
 public:
  std::string take(std::string_view piece);
  /// Call this after the last piece; returns a cut-off character.
  std::string rest();

 private:
  std::string kept_;
};
/// Returns the same characters as \uNNNN, as JSON and TOML write them in strings. Other bytes stay.
std::string with_unicode_escapes(std::string_view text);

/// From now on visible() is applied to everything written to stdout and stderr. Call it once,
/// before another thread or any output. exit(3) shows a character that the end of all output has
/// cut off.
void make_output_visible();
/// From now on bytes written to stdout stay unchanged unless it is a terminal: for a verb whose
/// output is a text for a file or a program.
void keep_bytes_of_output();
/// Returns stderr without visible(), for this program's own control sequences beside texts that
/// have been made visible. Before make_output_visible() it is stderr.
std::FILE* plain_errors();

/// Writes bytes unchanged, in as many calls as that takes; false if the descriptor refuses them,
/// with errno. Signal handlers may call it.
bool write_output(int descriptor, std::string_view text);
/// From now on drops output that nobody takes for two seconds (a paused terminal or pager, a
/// stalled collector), because a process that was asked to end must not wait for it. Signal
/// handlers may call it, too.
void hurry_output() noexcept;

}  // namespace tutti
