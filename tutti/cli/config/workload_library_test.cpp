#include "tutti/cli/config/workload_library.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
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
  EXPECT_NE(refusal_of_library("#!/bin/sh").find("no shared object"), std::string::npos);
  EXPECT_NE(refusal_of_library("\177ELF of something else").find("TUTTI_WORKLOAD()"),
            std::string::npos);
  const std::string other = refusal_of_library("\177ELF\0tutti workload interface: 0.0.9 abc\0"s);
  EXPECT_NE(other.find("built against Tutti 0.0.9 abc, and this is Tutti 0."), std::string::npos)
      << other;
}

TEST(WorkloadLibrary, NamesTheFileThatCannotBeOne) {
  const ScratchDirectory scratch;
  EXPECT_NE(
      refused("nowhere/libmine.so").find("model.library = \"nowhere/libmine.so\": there is no"),
      std::string::npos);
  EXPECT_NE(refused("nowhere/libmine.so"), "") << "and again, should somebody go on";
  EXPECT_NE(refused(scratch.path()).find("is no file"), std::string::npos);
  EXPECT_NE(refused(scratch.write("lib.so", std::string("\177ELF"))).find("TUTTI_WORKLOAD()"),
            std::string::npos);
  EXPECT_NE(refused("/dev/zero").find("is no file"), std::string::npos);
  config::ModelSection none;
  load_library(none);
  EXPECT_EQ(none.library_content, "");
}

}  // namespace tutti::cli
