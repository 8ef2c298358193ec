// The program: program.h.

#include "tutti/cli/program.h"

int main(int argc, char** argv) { return tutti::cli::run_program(argc, argv); }
