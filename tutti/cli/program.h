#pragma once
// The program `tutti` as a function, for a program that brings models and metrics of its own:
//
//   int main(int argc, char** argv) {
//     tutti::register_model(...);
//     return tutti::run_program(argc, argv);
//   }
//
// It is linked with Tutti::program of the CMake package; docs/own_workload.md.

namespace tutti {

/// All of main: what it returns is the exit status. Ranks that it starts are this same program.
int run_program(int argc, char** argv);

}  // namespace tutti
