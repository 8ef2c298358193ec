#include "tutti/data/store/fetch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/sha256.h"
#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// A web server of one file that breaks connections.
class Server {
 public:
  std::string file = std::string(300'000, 'x') + "end";
  std::string tag = "\"one\"";
  std::atomic<int> breaks = 0;      // responses that end after `piece` bytes
  std::atomic<int> refusals = 0;    // 503 responses before the others
  std::atomic<bool> ranges = true;  // whether it supports ranges
  std::atomic<int> answers = 0;
  size_t piece = 100'000;

  Server() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at), size), 0);
    ::listen(socket_, 8);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] {
      for (int c; (c = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(c)) answer(c);
    });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url(const std::string& name) const {
    return fmt::format("http://127.0.0.1:{}/{}", port_, name);
  }

 private:
  void answer(int client) {
    std::string request;
    for (char block[1024]; request.find("\r\n\r\n") == request.npos;) {
      const ssize_t got = ::recv(client, block, sizeof block, 0);
      if (got <= 0) return;
      request.append(block, static_cast<size_t>(got));
    }
    ++answers;
    size_t from = 0;
    const size_t range = request.find("Range: bytes="), same = request.find("If-Range: ");
    const bool is_same = same == request.npos || request.compare(same + 10, tag.size(), tag) == 0;
    if (range != request.npos && ranges && is_same) from = std::stoul(request.substr(range + 13));
    std::string head = "HTTP/1.1 200 OK\r\n";
    if (refusals > 0) {
      --refusals;
      from = 0;
      head = "HTTP/1.1 503 Service Unavailable\r\n";
    } else if (request.find("GET /file") == request.npos) {
      head = "HTTP/1.1 404 Not Found\r\n";
    } else if (from > 0) {
      head = fmt::format("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\n", from,
                         file.size() - 1, file.size());
    }
    head += fmt::format("ETag: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", tag,
                        file.size() - from);
    std::string body = file.substr(from);
    if (breaks > 0) --breaks, body.resize(std::min(body.size(), piece));
    head += body;
    for (size_t sent = 0; sent < head.size();) {
      const ssize_t done = ::send(client, head.data() + sent, head.size() - sent, MSG_NOSIGNAL);
      if (done <= 0) return;
      sent += static_cast<size_t>(done);
    }
  }

  int socket_, port_ = 0;
  std::thread thread_;
};

std::string digest_of(const std::string& text) {
  return sha256(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

class FetchTest : public ::testing::Test {
 protected:
  FetchSpec spec(bool with_sum = true) const {
    return {.items = {{server.url("file"), "file", with_sum ? digest_of(server.file) : ""}},
            .to = scratch.path(),
            .tries = 3,
            .wait_seconds = 0.01};
  }
  std::string fetched() const {
    const Bytes bytes = read_all(scratch.path() / "file");
    return {bytes.begin(), bytes.end()};
  }
  bool has(const char* name) const { return fs::exists(scratch.path() / name); }
  std::string error(const FetchSpec& of) const {
    return message_of<IoError>("", [&] { fetch_files(of); });
  }
  Server server;
  const ScratchDirectory scratch;
};

TEST_F(FetchTest, GoesOnWhereTheLineBroke) {
  server.breaks = 2;
  const FetchResult result = fetch_files(spec());
  EXPECT_EQ(fetched(), server.file);
  EXPECT_EQ(result.fetched_bytes, 300'003);  // no byte came twice
  EXPECT_EQ(server.answers, 3);
  EXPECT_FALSE(has("file.part") || has("file.part.tag"));
  EXPECT_TRUE(has("SHA256SUMS"));
  EXPECT_EQ(fetch_files(spec()).fetched_files, 0);
}

TEST_F(FetchTest, AnotherFileOnTheServerIsFetchedFromItsBeginning) {
  server.breaks = 1;
  FetchSpec once = spec(false);
  once.tries = 1;
  once.stall_seconds = 1;
  server.piece = 0;
  EXPECT_TRUE(has_text(error(once), "the same command goes on there"));
  server.piece = 100'000;
  server.breaks = 1;
  const std::string old = server.file;
  server.file = std::string(200'000, 'y');
  // A killed fetch has left a part of the old file.
  scratch.write("file.part", old.substr(0, 1000));
  scratch.write("file.part.tag", std::string("\"older\"\n"));
  fetch_files(spec(false));
  EXPECT_EQ(fetched(), server.file);
}

TEST_F(FetchTest, ARefusalOfANewStateDoesNotNameTheBytesThatAreHeld) {
  // The part is of the old file; the server now has another one, and sends its tag with a response
  // without content.
  scratch.write("file.part", server.file.substr(0, 1000));
  scratch.write("file.part.tag", std::string("\"one\"\n"));
  server.file = std::string(200'000, 'y');
  server.tag = "\"two\"";
  server.refusals = 1;
  fetch_files(spec(false));
  EXPECT_EQ(fetched(), server.file);
}

TEST_F(FetchTest, OfAFileWithoutATagNoOlderTagStays) {
  scratch.write("file.part.tag", std::string("\"older\"\n"));
  server.tag = "W/\"weak\"";
  server.breaks = 1;
  fetch_files(spec(false));
  EXPECT_EQ(fetched(), server.file);
  EXPECT_EQ(server.answers, 2);
  EXPECT_FALSE(has("file.part") || has("file.part.tag"));
}

TEST_F(FetchTest, AListOfSumsThatCannotBeWrittenLosesNoFile) {
  fs::create_directory(scratch.path() / "SHA256SUMS");
  testing::internal::CaptureStderr();
  const std::string failed = error(spec());
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(failed, "");
  EXPECT_EQ(fetched(), server.file);
  EXPECT_TRUE(has_text(message, "SHA256SUMS: cannot be written"));
  EXPECT_TRUE(has_text(message, "has come and is sound"));
}

/// While it lives, files of this process may be one byte long; writing more is an error.
class ShortFiles {
 public:
  ShortFiles() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit one_byte{.rlim_cur = 1, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &one_byte), 0);
  }
  ~ShortFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  void (*signal_)(int);
  rlimit before_{};
};

TEST_F(FetchTest, ADiskWithoutRoomIsSaid) {
  std::string many, few;
  {
    const ShortFiles full;
    many = error(spec());
    server.file = "few";  // these bytes are written when the file is closed
    few = error(spec());
  }
  for (const std::string& message : {many, few})
    EXPECT_TRUE(has_text(message, "file.part: cannot be written: File too large"));
  EXPECT_FALSE(has("file"));
}

TEST_F(FetchTest, WhatAnotherHasPlantedIsNotWrittenThrough) {
  const fs::path victim = scratch.write("victim", std::string("mine"));
  for (const char* name : {"file.part", "file.part.tag"}) {
    fs::create_symlink(victim, scratch.path() / name);
    EXPECT_TRUE(
        has_text(error(spec()), std::string(name) + ": cannot be opened: it is a symbolic link"));
    EXPECT_TRUE(fs::remove(scratch.path() / name));
  }
  EXPECT_FALSE(has("file"));
  ASSERT_EQ(::mkfifo((scratch.path() / "file.part.tag").c_str(), 0600), 0);
  EXPECT_TRUE(has_text(error(spec()), "pipe (FIFO), no regular file"));
  fs::remove(scratch.path() / "file.part.tag");
  ASSERT_EQ(::mkfifo((scratch.path() / "file.part").c_str(), 0600), 0);
  EXPECT_EQ(error(spec()), "") << "it holds nothing: a file takes its place";
  EXPECT_EQ(fetched(), server.file);
  EXPECT_EQ(fs::file_size(victim), 4u);
}

// NFS reports root's files as nobody's. Only root can test it, by giving a file away.
TEST_F(FetchTest, APartOfAnotherUsersBeginsAnew) {
  const std::string half = server.file.substr(0, 100'000);
  for (const char* name : {"file.part", "file.part.tag"}) {
    scratch.write("file.part", half);
    scratch.write("file.part.tag", server.tag + "\n");
    const bool given = ::geteuid() == 0;
    if (given) {
      ASSERT_EQ(::chown((scratch.path() / name).c_str(), 65534, 65534), 0);
    }
    EXPECT_EQ(fetch_files(spec()).fetched_bytes, given ? 300'003 : 200'003);
    EXPECT_EQ(fetched(), server.file);
    struct stat status {};
    ASSERT_EQ(::stat((scratch.path() / "file").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, ::geteuid());
    fs::remove(scratch.path() / "file");
  }
}

TEST_F(FetchTest, APipeIsNoFileThatIsThereAlready) {
  ASSERT_EQ(::mkfifo((scratch.path() / "file").c_str(), 0600), 0);
  for (const bool with_sum : {false, true})
    EXPECT_TRUE(has_text(error(spec(with_sum)), "file: expected a file, found a pipe (FIFO)"));
}

TEST_F(FetchTest, FilesOfThisMachineAreNotFetched) {
  scratch.write("own", std::string("own"));
  FetchSpec local = spec(false);
  local.items[0].url = "file://" + (scratch.path() / "own").string();
  EXPECT_NE(error(local), "");
  EXPECT_FALSE(has("file"));
}

TEST(FetchRedirections, HttpsStaysHttps) {
  EXPECT_STREQ(redirections_of("https://x.org/a"), "https");
  EXPECT_STREQ(redirections_of("http://x.org/https:"), "http,https,ftp");
}

TEST_F(FetchTest, AServerThatCannotGoOnBeginsAgain) {
  server.breaks = 1;
  server.ranges = false;
  fetch_files(spec());
  EXPECT_EQ(fetched(), server.file);
}

TEST_F(FetchTest, AWrongChecksumKeepsNothing) {
  FetchSpec wrong = spec();
  wrong.items[0].sha256 = std::string(64, '0');
  EXPECT_TRUE(
      has_text(error(wrong), "its SHA-256 is " + digest_of(server.file) + ", and should be 000"));
  EXPECT_FALSE(has("file") || has("file.part"));
  scratch.write("file", std::string("other"));
  EXPECT_TRUE(has_text(error(spec()), "is there already and its SHA-256"));
}

TEST_F(FetchTest, AnotherFileInItsPlaceIsNamed) {
  const auto message = [&](const std::string& name, const std::string& content) {
    server.file = content;
    FetchSpec one = spec();
    one.items[0].name = name;
    testing::internal::CaptureStderr();
    fetch_files(one);
    return testing::internal::GetCapturedStderr();
  };
  const std::string page = "<!DOCTYPE html><html>Sign in</html>";
  EXPECT_TRUE(has_text(message("x.npy", page), "x.npy: found a page of the web"));
  EXPECT_FALSE(has_text(message("x.html", page), "found"));
  EXPECT_TRUE(
      has_text(message("y.npy", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"));
  EXPECT_FALSE(has_text(message("z.npy", "\x93NUMPY"), "found"));
}

TEST_F(FetchTest, WhatIsNotThereIsSaidAtOnce) {
  FetchSpec gone = spec();
  gone.items[0].url = server.url("nothing");
  EXPECT_TRUE(has_text(error(gone), "the server answers 404"));
  EXPECT_EQ(server.answers, 1);
}

TEST_F(FetchTest, ListsHaveUrlsChecksumsAndNames) {
  const fs::path list = scratch.path() / "list";
  const std::string sum(64, 'a');
  std::ofstream(list) << "# two files\nhttps://x.org/a/b.h5?key=1 " << sum
                      << "\nhttp://x.org/c other.h5  # renamed\n";
  const auto items = read_url_list(list);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].name, "b.h5");
  EXPECT_EQ(items[0].sha256, sum);
  EXPECT_EQ(items[1].name, "other.h5");
  for (const char* wrong : {"just-a-word\n", "http://x.org/\n", "http://x.org/a ../a\n",
                            "http://x.org/a\nhttp://y.org/a\n", "\n"}) {
    std::ofstream(list, std::ios::trunc) << wrong;
    EXPECT_THROW(read_url_list(list), IoError) << wrong;
  }
  std::ofstream(list, std::ios::trunc) << "\xef\xbb\xbfhttps://x.org/a.h5\r\nhttps://x.org/b\r\n";
  const auto copied = read_url_list(list);
  ASSERT_EQ(copied.size(), 2u);
  EXPECT_EQ(copied[0].url, "https://x.org/a.h5");
  EXPECT_EQ(copied[1].name, "b");
  std::ofstream(list, std::ios::trunc) << std::string("\xff\xfeh\0t\0t\0p\0", 10);
  EXPECT_TRUE(throws<IoError>({"expected a list of URLs, found text as UTF-16"},
                              [&] { read_url_list(list); }));
  EXPECT_EQ(known_downloads("mnist").size(), 4u);
}

}  // namespace
}  // namespace tutti::data
