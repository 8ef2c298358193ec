#pragma once
// Small files of text that people write, copy and edit, also with programs of Windows: lists,
// tables of words, configurations.

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/base/small_text.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// Empty for a text in UTF-8 (or of no mark), and for no bytes. Otherwise the message of an error:
/// "NAME: expected a list of URLs, found text as UTF-16: convert it with ...". `text` is the
/// content of the file `name`, or its first kFirstBytes.
std::string why_no_text(std::string_view text, std::string_view name, std::string_view expected);
/// The same of a file.
std::string why_no_text(const FileBytes& file, std::string_view expected);

/// A text whose lines end with '\n' alone and that begins without a byte-order mark.
std::string plain_lines(std::string text);

/// The whole of an open file as plain_lines(); the file may be a pipe. BadFile where it is no text,
/// before more than its beginning is read; IoError where it cannot be read, as a folder, and where
/// it goes on beyond `terms.most`.
std::string whole_text(std::istream& file, std::string_view name, const SmallText& terms);
/// The same of open_small_text()'s file; nothing, with errno, where that is not open.
std::optional<std::string> read_small_text(const std::filesystem::path& path,
                                           const SmallText& terms);

}  // namespace tutti::data
