#pragma once
// The header for a user's own workload: models and metrics that a shared object (model.library) or
// a user's program (cli/program.h) adds. See docs/own_workload.md.

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/workload_interface.h"

/// Use it once in a shared object, at file scope. `function`, void(), calls register_model() and
/// register_metric(), and is called once, before any other thread. An exception from it ends the
/// program as an error of the configuration. The text names the headers with which the object was
/// compiled; it is read from the file before any of the object's code runs, so that an object of
/// another version is refused with an explanation. In a user's program the macro does no harm.
#define TUTTI_WORKLOAD(function)                                                        \
  extern "C" {                                                                          \
  extern __attribute__((visibility("default"))) const char tutti_workload_is[];         \
  const char tutti_workload_is[] = TUTTI_WORKLOAD_INTERFACE;                            \
  __attribute__((visibility("default"))) void tutti_workload_register() { function(); } \
  }                                                                                     \
  static_assert(true, "a semicolon follows")
