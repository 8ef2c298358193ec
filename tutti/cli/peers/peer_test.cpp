#include "tutti/cli/peers/peer.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::cli {
namespace {

std::vector<std::string> names(std::string_view list, bool processes) {
  std::vector<std::string> found;
  for (const PeerKind* kind : peers_named(list, processes)) found.emplace_back(kind->name);
  return found;
}

TEST(Peers, ByName) {
  EXPECT_EQ(names("memcpy,mpi", true), (std::vector<std::string>{"memcpy", "MPI"}));
  EXPECT_TRUE(names("none", true).empty());
  EXPECT_EQ(names("all", false), std::vector<std::string>{"memcpy"});
  EXPECT_EQ(names("all", true)[1], "MPI");
  EXPECT_THROW(names("mpi", false), ConfigError);
  for (const char* wrong : {"", "nccl", "memcpy,", "none,mpi"})
    EXPECT_THROW(names(wrong, true), ConfigError) << wrong;
}

TEST(Peers, WhatTheBuildLacksSaysWhatToDo) {
  for (const PeerKind* kind : peer_kinds()) {
    EXPECT_NE(kind->absent.empty(), kind->open == nullptr) << kind->name;
    if (kind->absent.empty()) continue;
    EXPECT_TRUE(has_text(kind->absent, "configure"));
    EXPECT_THROW(names(kind->name, true), ConfigError);
  }
}

}  // namespace
}  // namespace tutti::cli
