#include "tutti/keep/manifest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/checkpoint_folder.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

std::string refusal(const fs::path& checkpoint) {
  return message_of<IoError>("", [&] { verify_checkpoint(checkpoint); });
}

// Anyone can make a manifest with a right checksum: it must lead nowhere else and block on nothing.
TEST(Manifest, NamesFilesOfItsFolderAlone) {
  const ScratchDirectory scratch;
  const auto bytes = std::vector<std::byte>(4);
  const NamedTensor w{"w", {DType::f32, {1}, {}}, bytes};
  CheckpointContent content;
  content.weights = content.state = {w.ref()};
  const fs::path checkpoint = write_checkpoint(scratch.path() / "checkpoints", content, 0);
  const Manifest honest = read_manifest(checkpoint / kManifest);
  for (const char* name : {"../../secret", "/etc/hostname", "..", ""}) {
    Manifest hostile = honest;
    hostile.files[name] = {3, 4};
    replace_file(checkpoint / kManifest, to_json(hostile));
    EXPECT_TRUE(has_text(refusal(checkpoint), "is no name of a file beside it"));
  }
  replace_file(checkpoint / kManifest, to_json(honest));
  EXPECT_EQ(refusal(checkpoint), "");
  fs::remove(checkpoint / kStateFile);
  ASSERT_EQ(::mkfifo((checkpoint / kStateFile).c_str(), 0600), 0);
  EXPECT_TRUE(has_text(refusal(checkpoint), "it is a pipe (FIFO), no regular file"));
}

TEST(Manifest, OfADamagedOneTheDamageIsSaidAndNotWhoseExceptionItIs) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path() / kManifest) << "{\"schema\":";
  const std::string message = refusal(scratch.path());
  EXPECT_TRUE(has_text(message, "manifest.json: damaged: parse error at"));
}

}  // namespace
}  // namespace tutti::keep
