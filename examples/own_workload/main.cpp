// Tutti's program with one more model and one more metric.

#include "tutti/cli/program.h"
#include "workload.h"

int main(int argc, char** argv) {
  register_workload();
  return tutti::cli::run_program(argc, argv);
}
