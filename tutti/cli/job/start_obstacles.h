#pragma once
// Finds reasons why MPI may have failed to start on this machine.

#include <filesystem>
#include <string>

namespace tutti::cli {

/// For jobs in which no rank came further than MPI's start: returns what is wrong with the folder
/// for temporary files, with the network or with limits, as text to append to a sentence; empty
/// where nothing is. Launchers and libraries of MPI do not report it, or not all of it.
std::string start_obstacles();

/// Returns what keeps MPI from keeping its files in this folder; empty: nothing.
std::string obstacle_of_folder(const std::filesystem::path& folder);

}  // namespace tutti::cli
