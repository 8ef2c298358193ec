#pragma once
// What a workload of one's own is written with: models and metrics that a shared object
// (model.library) or a program of one's own (cli/program.h) brings. docs/own_workload.md.

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/workload_interface.h"

/// Stands once in a shared object, at file scope. `function`, void(), calls register_model() and
/// register_metric(), and is called once, before any other thread. What it throws ends the program
/// as an error of the configuration. The text says which headers the object was compiled with; it
/// is read from the file before anything of the object runs, so that an object of another version
/// is refused with a sentence. In a program of one's own the macro does no harm.
#define TUTTI_WORKLOAD(function)                                                        \
  extern "C" {                                                                          \
  extern __attribute__((visibility("default"))) const char tutti_workload_is[];         \
  const char tutti_workload_is[] = TUTTI_WORKLOAD_INTERFACE;                            \
  __attribute__((visibility("default"))) void tutti_workload_register() { function(); } \
  }                                                                                     \
  static_assert(true, "a semicolon follows")
