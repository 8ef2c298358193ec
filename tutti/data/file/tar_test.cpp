#include "tutti/data/file/tar.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/base/expect_text.h"
#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

/// An archive as GNU tar writes it. Each member has one byte, or is a link to `target`.
class TarBytes {
 public:
  void file(const std::string& name, char content) { member(name, '0', "", {content}); }
  void hard(const std::string& name, const std::string& target) { member(name, '1', target, {}); }
  void soft(const std::string& name, const std::string& target) { member(name, '2', target, {}); }
  void text(char type, const std::string& content) { member("long", type, "", content); }
  void end() { bytes_ += std::string(1024, '\0'); }
  Bytes bytes() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  void member(const std::string& name, char type, const std::string& target,
              const std::string& content) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(124, 11, fmt::format("{:011o}", content.size()));
    header[156] = type;
    header.replace(157, target.size(), target);
    header.replace(257, 6, "ustar ");
    header.replace(148, 8, "        ");
    const int sum = std::accumulate(header.begin(), header.end(), 0, [](int all, char c) {
      return all + static_cast<unsigned char>(c);
    });
    header.replace(148, 6, fmt::format("{:06o}", sum));
    header[154] = '\0';
    bytes_ += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }

  std::string bytes_;
};

/// Returns "NAME=CONTENT " for each file.
std::string contents(const std::filesystem::path& path) {
  const FileBytes file = FileBytes::open(path);
  std::string text;
  walk_tar(file, 0, file.size(), [&](const TarMember& member) {
    Bytes bytes(static_cast<size_t>(member.bytes));
    file.read(member.offset, bytes);
    text += fmt::format("{}={} ", member.name, std::string(bytes.begin(), bytes.end()));
  });
  return text;
}

TEST(Tar, LinksAreWhatTheyLeadTo) {
  const ScratchDirectory scratch;
  TarBytes tar;
  tar.soft("early", "./a/../a//1");
  tar.file("./a/1", 'x');
  tar.hard("b/1", "a/1");
  tar.hard("b/2", "./b/1");
  tar.soft("b/3", "../a/1");
  tar.soft("c/4", "../b/3");
  tar.hard("c/5", "c/4");
  tar.text('K', "a/1" + std::string(1, '\0'));
  tar.hard("d", "cut off");
  tar.text('x', "16 linkpath=a/1\n");
  tar.soft("e", "cut off");
  tar.soft("round", "again");
  tar.soft("again", "round");
  tar.soft("out", "/a/1");
  tar.soft("up", "../a/1");
  tar.hard("late", "f");
  tar.file("f", 'y');
  tar.end();
  testing::internal::CaptureStderr();
  const auto path = scratch.write("x.tar", tar.bytes());
  EXPECT_EQ(contents(path), "early=x ./a/1=x b/1=x b/2=x b/3=x c/4=x c/5=x d=x e=x f=y ");
  contents(path);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(message, "x.tar: passed over: 5 links that lead to no file of the archive"));
  EXPECT_TRUE(has_text(message, "late -> f"));
  EXPECT_TRUE(has_once(message, "passed over"));
}

TEST(Tar, OfOneNameTheLastMemberHolds) {
  const ScratchDirectory scratch;
  TarBytes tar;
  tar.file("a", '1');
  tar.hard("kept", "a");
  tar.soft("follows", "a");
  tar.file("b", '2');
  tar.file("./a", '3');
  tar.end();
  EXPECT_EQ(contents(scratch.write("x.tar", tar.bytes())), "kept=1 follows=3 b=2 ./a=3 ");
  tar.file("a", '4');  // joined with another archive
  tar.end();
  EXPECT_EQ(contents(scratch.write("x.tar", tar.bytes())), "kept=1 follows=3 b=2 ./a=3 a=4 ");
}

}  // namespace
}  // namespace tutti::data
