#pragma once
// The files in a folder and in those below it.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tutti::data {

/// Calls look() with each entry that is no folder, in the order of names, and its path from
/// `folder` on; until look() says false. Hidden entries are nobody's. Links to folders are followed
/// behind all folders themselves, but a folder (by device and inode) that was there before or lies
/// above `folder` is passed over, with a warning that names the link: links may lead back, or
/// multiply what they lead to. Returns these links. IoError where a folder cannot be looked into.
std::vector<std::filesystem::path> walk_folder(
    const std::filesystem::path& folder,
    const std::function<bool(const std::filesystem::directory_entry& file,
                             const std::string& below)>& look);

/// Lists a folder, "" the working one, by name; hidden entries only where they are asked for.
/// IoError where it cannot be looked into.
std::vector<std::filesystem::directory_entry> folder_entries(const std::filesystem::path& folder,
                                                             bool hidden = false);

}  // namespace tutti::data
