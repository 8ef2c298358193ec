#include "tutti/cli/config/workload_library.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/train/workload_interface.h"

namespace tutti::cli {
namespace {

using namespace std::string_literals;

std::string refused(const std::string& path) {
  config::ModelSection model;
  model.library = path;
  try {
    load_library(model);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

// tests/package (own_workload.cmake) tests loading, where an object is built.
TEST(WorkloadLibrary, LooksAtTheFileBeforeAnythingOfItRuns) {
  EXPECT_EQ(refusal_of_library("\177ELF...\0"s + TUTTI_WORKLOAD_INTERFACE + "\0..."s), "");
  EXPECT_TRUE(has_text(refusal_of_library("#!/bin/sh"), "no shared object"));
  EXPECT_TRUE(has_text(refusal_of_library("\177ELF of something else"), "TUTTI_WORKLOAD()"));
  const std::string other = refusal_of_library("\177ELF\0tutti workload interface: 0.0.9 abc\0"s);
  EXPECT_TRUE(has_text(other, "built against Tutti 0.0.9 abc, and this is Tutti 0."));
}

TEST(WorkloadLibrary, NamesTheFileThatCannotBeOne) {
  const ScratchDirectory scratch;
  EXPECT_TRUE(has_text(refused("nowhere/libmine.so"),
                       "model.library = \"nowhere/libmine.so\": there is no"));
  EXPECT_NE(refused("nowhere/libmine.so"), "") << "and again, should somebody go on";
  EXPECT_TRUE(has_text(refused(scratch.path()), "is no file"));
  EXPECT_TRUE(
      has_text(refused(scratch.write("lib.so", std::string("\177ELF"))), "TUTTI_WORKLOAD()"));
  EXPECT_TRUE(has_text(refused("/dev/zero"), "is no file"));
  config::ModelSection none;
  load_library(none);
  EXPECT_EQ(none.library_content, "");
}

}  // namespace tutti::cli
