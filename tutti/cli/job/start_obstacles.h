#pragma once
// Why MPI may not have been able to start on this machine.

#include <filesystem>
#include <string>

namespace tutti {

/// For jobs in which no rank came further than MPI's start: what is wrong with the folder for
/// temporary files, with the network or with limits, as text to append to a sentence; empty where
/// nothing is. Launchers and libraries of MPI do not say it, or not all of it.
std::string start_obstacles();

/// The obstacle that keeps MPI from keeping its files in this folder; empty: none.
std::string obstacle_of_folder(const std::filesystem::path& folder);

}  // namespace tutti
