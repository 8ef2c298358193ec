#pragma once
// Reads small text files that people write, copy and edit, also with programs of Windows: lists,
// tables of words, configurations.

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/base/small_text.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// Returns an empty string for a text in UTF-8 (or without a mark) and for no bytes, otherwise an
/// error message: "NAME: expected a list of URLs, found text as UTF-16: convert it with ...".
/// `text` is the content of the file `name`, or its first kFirstBytes.
std::string why_no_text(std::string_view text, std::string_view name, std::string_view expected);
/// Does the same for an open file.
std::string why_no_text(const FileBytes& file, std::string_view expected);

/// Returns the text with lines ended by '\n' alone and without a byte-order mark.
std::string plain_lines(std::string text);

/// Reads the whole of an open file as plain_lines(); it may be a pipe. BadFile if it is no text,
/// before more than its beginning is read; IoError if it cannot be read, as a folder cannot, or is
/// longer than `terms.most`.
std::string whole_text(std::istream& file, std::string_view name, const SmallText& terms);
/// Does the same with open_small_text(); returns nothing, with errno, if the file does not open.
std::optional<std::string> read_small_text(const std::filesystem::path& path,
                                           const SmallText& terms);

}  // namespace tutti::data
