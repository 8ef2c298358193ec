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

}  // namespace tutti
