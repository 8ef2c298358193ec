#include "tutti/comm/transport/shm/segment.h"
#include "tutti/base/error.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tutti/base/refused_calls.h"
#include "tutti/comm/transport/shm/process_watch.h"
#include "tutti/comm/transport/shm/window_registry.h"

namespace tutti::comm {
namespace {

// A child process that lives until its end of the pipe is closed.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    process_ = fork();
    if (process_ == 0) {
      close(pipe_[1]);
      char c = 0;
      [[maybe_unused]] const ssize_t n = read(pipe_[0], &c, 1);
      _exit(body());
    }
    close(pipe_[0]);
  }
  int finish() {
    close(pipe_[1]);
    int status = -1;
    waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t process() const { return process_; }

 private:
  std::array<int, 2> pipe_{};
  pid_t process_ = -1;
};

std::optional<SharedSegment> open_again(const SharedSegment& segment, size_t bytes,
                                        PeerAccess access) {
  return SharedSegment::open(getpid(), segment.descriptor(), bytes, segment.nonce(), access);
}

TEST(SharedSegment, StartsAsZerosAndAnotherProcessSeesTheBytes) {
  const pid_t owner = getpid();
  SharedSegment mine = SharedSegment::create(10000);
  mine.back(0, 10000);
  EXPECT_TRUE(std::ranges::all_of(mine.memory(), [](std::byte b) { return b == std::byte{0}; }));
  const int descriptor = mine.descriptor();
  Child child([owner, descriptor, nonce = mine.nonce()] {
    const auto theirs = SharedSegment::open(owner, descriptor, 10000, nonce, PeerAccess::write);
    if (!theirs) return 1;
    theirs->memory()[1] = std::byte{9};
    return theirs->memory()[0] == std::byte{42} ? 0 : 2;
  });
  mine.memory()[0] = std::byte{42};
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(mine.memory()[1], std::byte{9});
}

TEST(SharedSegment, MovesAndRefusesWhatIsNotThere) {
  SharedSegment a = SharedSegment::create(100);
  std::byte* at = a.memory().data();
  SharedSegment b = std::move(a);
  EXPECT_EQ(a.memory().data(), nullptr);
  EXPECT_EQ(b.memory().data(), at);
  a = std::move(b);
  EXPECT_EQ(a.memory().data(), at);
  const int descriptor = a.descriptor();
  EXPECT_FALSE(open_again(a, 200, PeerAccess::read)) << "another size is another segment";
  a.close_descriptor();
  EXPECT_FALSE(SharedSegment::open(getpid(), descriptor, 100, a.nonce(), PeerAccess::read));
  EXPECT_TRUE(SharedSegment::create(0).memory().empty());
}

// A stray store of one rank must not change another's gradients, and no process may cut the memory.
TEST(SharedSegment, PeersThatReadCannotWriteAndNobodyCanShortenIt) {
  const SharedSegment mine = SharedSegment::create(100);
  const auto peer = open_again(mine, 100, PeerAccess::read);
  ASSERT_TRUE(peer);
  mine.memory()[3] = std::byte{7};
  EXPECT_EQ(peer->memory()[3], std::byte{7});
  Child child([at = peer->memory().data()] {
    *static_cast<volatile std::byte*>(at) = std::byte{1};
    return 0;
  });
  EXPECT_NE(child.finish(), 0) << "it wrote";
  EXPECT_NE(ftruncate(mine.descriptor(), 1), 0);
  EXPECT_NE(ftruncate(mine.descriptor(), 1 << 20), 0);
}

TEST(SharedSegment, NeedsNeitherMemfdNorFallocate) {
  EXPECT_EQ(with_refused({SYS_memfd_create, SYS_fallocate}, EPERM,
                         [] {
                           SharedSegment mine = SharedSegment::create(10000);
                           mine.back(0, 10000);
                           const auto peer = open_again(mine, 10000, PeerAccess::read);
                           mine.memory()[9999] = std::byte{7};
                           return peer && peer->memory()[9999] == std::byte{7};
                         }),
            0);
}

// Where two containers have equal process ids and descriptors, the size alone proves nothing.
TEST(SharedSegment, RefusesASegmentOfTheSameSizeThatIsAnotherOne) {
  const SharedSegment meant = SharedSegment::create(100), found = SharedSegment::create(100);
  EXPECT_NE(meant.nonce(), found.nonce());
  EXPECT_TRUE(open_again(meant, 100, PeerAccess::read));
  EXPECT_FALSE(
      SharedSegment::open(getpid(), found.descriptor(), 100, meant.nonce(), PeerAccess::read));
}

// Several processes may back one segment, each its own part; pages backed twice stay as they are.
TEST(SharedSegment, IsBackedByWhoeverWritesIt) {
  constexpr size_t kBytes = size_t{5} << 20;
  SharedSegment mine = SharedSegment::create(kBytes);
  auto theirs = open_again(mine, kBytes, PeerAccess::write);
  ASSERT_TRUE(theirs);
  theirs->back(kBytes / 2, kBytes);
  theirs->memory()[kBytes - 1] = std::byte{7};
  mine.back(0, kBytes);
  mine.enlarge_pages();
  EXPECT_EQ(mine.memory()[0], std::byte{0});
  EXPECT_EQ(mine.memory()[kBytes - 1], std::byte{7});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mine.memory().data()) % (size_t{2} << 20), 0u);
  EXPECT_THROW(SharedSegment::create(size_t{1} << 62).back(0, size_t{1} << 62), CommError);
}

// A location from a peer may be damaged.
TEST(WindowRegistry, BelievesNoLocationThatIsOutsideTheWindow) {
  struct Memory final : Window {
    explicit Memory(std::span<std::byte> bytes)
        : Window(0, std::make_shared<Neighbours>(std::vector{0, 1}), {bytes, {}}) {}
  };
  std::array<std::byte, 100> bytes{};
  const Memory window(bytes);
  WindowRegistry registry(false);
  registry.add(7, &window);
  EXPECT_EQ(registry.address({7, 0, 90}, 10), bytes.data() + 90);
  EXPECT_EQ(registry.address({7, 0, 90}, 11), nullptr);
  EXPECT_EQ(registry.address({7, 0, 101}, 0), nullptr);
  EXPECT_EQ(registry.address({7, 0, UINT64_MAX}, 2), nullptr);
  EXPECT_EQ(registry.address({7, 1, 0}, 1), nullptr) << "that rank gave no memory";
  EXPECT_EQ(registry.address({7, 2, 0}, 1), nullptr) << "no such rank";
  EXPECT_EQ(registry.address({8, 0, 0}, 1), nullptr) << "no such window";
  EXPECT_EQ(registry.address({WindowRegistry::kSameProcess, 0, 0}, 1), nullptr) << "a process";
}

TEST(ProcessWatch, SeesAKilledProcessEvenBeforeItIsCollected) {
  Child child([] { return 0; });
  const ProcessWatch watch({child.process(), 0});
  EXPECT_FALSE(watch.gone(0));
  EXPECT_FALSE(watch.gone(1)) << "not watched";
  kill(child.process(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.process()), &info, WEXITED | WNOWAIT),
            0);  // dead, still a zombie
  EXPECT_TRUE(watch.gone(0));
  child.finish();
  EXPECT_TRUE(watch.gone(0));
}

// A program's timers, children and profilers send signals at any time.
TEST(SharedSegment, SignalsDoNotKeepItFromItsMemory) {
  struct sigaction ignoring {
  }, before{};
  ignoring.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &ignoring, &before), 0);
  const itimerval often{{0, 500}, {0, 500}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 4; ++i) {
    SharedSegment segment = SharedSegment::create(size_t{128} << 20);
    EXPECT_NO_THROW(segment.back(0, size_t{128} << 20));
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace tutti::comm
