#pragma once
// The program `tutti` as a function, for a program that adds models and metrics of its own:
//
//   int main(int argc, char** argv) {
//     tutti::register_model(...);
//     return tutti::run_program(argc, argv);
//   }
//
// Link it with Tutti::program of the CMake package; docs/own_workload.md.

namespace tutti::cli {

/// Runs all of main and returns the exit status. Ranks that it starts run this same program.
int run_program(int argc, char** argv);

}  // namespace tutti::cli
