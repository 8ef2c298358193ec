#pragma once
// Lists the files in a folder and in the folders below it.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tutti::data {

/// Calls look() with each entry that is no folder, in the order of names, and its path relative to
/// `folder`, until look() returns false. Hidden entries are skipped. Links to folders are followed
/// after all real folders; a folder (by device and inode) that was visited before or lies above
/// `folder` is skipped, with a warning that names the link, since links may lead back or repeat
/// folders. Returns the skipped links. IoError where a folder cannot be listed.
std::vector<std::filesystem::path> walk_folder(
    const std::filesystem::path& folder,
    const std::function<bool(const std::filesystem::directory_entry& file,
                             const std::string& below)>& look);

/// Lists a folder by name ("": the working folder), with hidden entries only if `hidden`. IoError
/// where it cannot be listed.
std::vector<std::filesystem::directory_entry> folder_entries(const std::filesystem::path& folder,
                                                             bool hidden = false);

}  // namespace tutti::data
