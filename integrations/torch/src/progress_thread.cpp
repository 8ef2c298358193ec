#include "progress_thread.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Pause between two polls while the caller computes, on the core that this thread would take from
// it: a share of the time since the last progress, between these limits.
constexpr int kShare = 4;
constexpr std::chrono::nanoseconds kNap = 20us, kLongNap = 200us;
// While the caller waits (for a Future, which cannot help) this thread polls without a pause for
// this long; then others may need the core more.
constexpr auto kPatience = 3ms;

}  // namespace

bool ProgressThread::wanted() {
  static const bool threads = [] {
    const char* const text = std::getenv("TUTTI_TORCH_PROGRESS_THREADS");
    const std::string_view number = text == nullptr || *text == 0 ? "1" : text;
    TORCH_CHECK_VALUE(number == "0" || number == "1", "TUTTI_TORCH_PROGRESS_THREADS=", number,
                      ": 0 and 1 are possible");
    return number == "1";
  }();
  return threads;
}

ProgressThread& ProgressThread::get() {
  static ProgressThread thread;
  return thread;
}

ProgressThread::ProgressThread() : process_(getpid()) {
  if (!wanted()) return;
  runs_ = true;
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

void ProgressThread::stop() {
  runs_ = false;
  if (!thread_.joinable()) return;
  if (getpid() != process_) return thread_.detach();
  thread_.request_stop();
  thread_.join();
}

ProgressThread::~ProgressThread() {
  stop();
  // The process ends: tensors cannot be freed any more, because Python is gone.
  for (auto& work : works_) work.release();
}

void ProgressThread::add(c10::intrusive_ptr<TuttiWork> work) {
  if (!runs_) pass();
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    pthread_getcpuclockid(pthread_self(), &caller_);
  }
  wake_.notify_one();  // no system call when the thread does not sleep
}

// Polls every work once. Returns whether any was completed.
bool ProgressThread::pass() {
  {
    const std::lock_guard lock(mutex_);
    looked_at_ = works_;
  }
  for (const auto& work : looked_at_) work->advance();
  std::erase_if(looked_at_, [](const auto& work) { return !work->isCompleted(); });
  if (looked_at_.empty()) return false;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(works_, [&](const auto& work) {
      return std::ranges::find(looked_at_, work) != looked_at_.end();
    });
  }
  looked_at_.clear();
  return true;
}

// Whether the processor has worked for the caller since the last poll.
bool ProgressThread::caller_computes() {
  const auto now = Clock::now();
  timespec time{};
  {
    const std::lock_guard lock(mutex_);
    if (clock_gettime(caller_, &time) != 0) return false;  // it has ended
  }
  const auto computed = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  const bool computes = computed - computed_ > (now - computed_at_) / 4;
  computed_ = computed;
  computed_at_ = now;
  return computes;
}

void ProgressThread::serve(const std::stop_token& stop) {
  prctl(PR_SET_NAME, "tutti_torch");
  // How much longer than requested a nap may be, in nanoseconds: usually 50,000.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  auto last = Clock::now();  // time of the last progress
  while (!stop.stop_requested()) {
    if (pass()) last = Clock::now();
    {
      std::unique_lock lock(mutex_);
      if (works_.empty()) {
        wake_.wait(lock, stop, [this] { return !works_.empty(); });
        last = Clock::now();
        continue;
      }
    }
    const std::chrono::nanoseconds quiet = Clock::now() - last;
    if (caller_computes() || quiet > kPatience)
      std::this_thread::sleep_for(std::clamp(quiet / kShare, kNap, kLongNap));
    else
      std::this_thread::yield();
  }
}

}  // namespace tutti_torch
