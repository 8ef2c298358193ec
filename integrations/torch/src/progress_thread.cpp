#include "progress_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "status.h"

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Between two looks. The thread shares its core with one that computes.
constexpr auto kNap = 20us;
constexpr auto kLongNap = 200us;  // once nothing has happened for ...
constexpr auto kQuiet = 50ms;

}  // namespace

ProgressThread& ProgressThread::get() {
  static ProgressThread thread;
  return thread;
}

int ProgressThread::wanted() {
  const char* const text = std::getenv("TUTTI_TORCH_PROGRESS_THREADS");
  if (text == nullptr || *text == 0) return 1;
  const std::string_view all = text;
  int threads = -1;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), threads);
  TORCH_CHECK_VALUE(error == std::errc() && end == all.data() + all.size() && threads >= 0,
                    "TUTTI_TORCH_PROGRESS_THREADS=", text, " is not a number of threads");
  return threads;
}

ProgressThread::ProgressThread() {
  if (wanted() > 0) thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

ProgressThread::~ProgressThread() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  // The process ends: tensors cannot be freed any more, because Python is gone.
  for (auto& work : works_) work.release();
}

void ProgressThread::add(c10::intrusive_ptr<TuttiWork> work) {
  if (!thread_.joinable()) pass();
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
  }
  wake_.notify_one();  // no system call when the thread does not sleep
}

// One look at everything. Whether anything was completed.
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

void ProgressThread::serve(const std::stop_token& stop) {
  prctl(PR_SET_NAME, "tutti_torch");
  prctl(PR_SET_TIMERSLACK,
        1000UL);             // nanoseconds that a nap may be longer than asked for: usually 50,000
  auto last = Clock::now();  // when anything happened
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
    if (Clock::now() - last < kQuiet)
      std::this_thread::sleep_for(kNap);
    else
      std::this_thread::sleep_for(kLongNap);
  }
}

}  // namespace tutti_torch
