#include "tutti/data/pipeline/pipeline.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>

#include "tutti/base/error.h"
#include "tutti/base/running_time.h"

namespace tutti::data {
namespace {

constexpr int kMaxChunk = 256;

// A batch-class thread is scheduled like any other but does not preempt a computing thread on
// waking up, which would stall all threads of a kernel at its barrier. Needs no privilege; where
// the system refuses, the thread just stays ordinary.
void prefer_computing_threads() {
  const sched_param parameters{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
}

/// Processor time of this thread: other threads on the same core are not counted.
int64_t processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Pipeline::Pipeline(const Dataset& dataset, const SampleWriter& writer,
                   std::unique_ptr<BatchOrder> order, const PipelineSpec& spec)
    : dataset_(dataset), writer_(writer), order_(std::move(order)), spec_(spec) {
  for (size_t i = 0; i < writer.size(); ++i)
    CHECK(writer.desc(i).shape[0] == order_->capacity(), "batches of {} samples into a tensor {}",
          order_->capacity(), writer.desc(i).to_string());
  if (spec_.threads < 0)
    throw ConfigError(
        fmt::format("{} data reader threads: give 0 (read inline) or more", spec_.threads));
  CHECK(spec_.chunk > 0 && spec_.chunk <= kMaxChunk, "chunk {}", spec_.chunk);
  if (spec_.memory.empty()) own_memory(spec_.slots);
  CHECK(std::ssize(spec_.memory) >= (spec_.threads > 0 ? 2 : 1), "{} slots for {} reader threads",
        spec_.memory.size(), spec_.threads);
  for (const Slot& slot : spec_.memory) {
    CHECK(slot.size() == writer.size(), "{} tensors in a slot for {}", slot.size(), writer.size());
    for (size_t i = 0; i < slot.size(); ++i) std::memset(slot[i], 0, writer.desc(i).bytes());
    slots_.push_back({.batch = {.tensors = slot, .id = {}}});
  }
  inline_reader_.sample = Sample(dataset.fields());
  for (int i = 0; i < spec_.threads; ++i) {
    readers_.push_back(std::make_shared<Reader>());
    readers_.back()->sample = Sample(dataset.fields());
    readers_.back()->thread = std::thread([this, own = readers_.back()] {
      read_until_stopped(*own);
      if (own->state != Reader::kLeftBehind) own->state = Reader::kEnded;
    });
  }
}

Pipeline::~Pipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  space_.notify_all();
  for (const std::shared_ptr<Reader>& reader : readers_) end_or_leave_behind(*reader);
}

void Pipeline::end_or_leave_behind(Reader& reader) {
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::duration<double>(timed_out_ ? 0 : spec_.timeout_seconds);
  for (const auto start = Clock::now(); reader.state != Reader::kEnded;) {
    int state = Reader::kReading;
    if (Clock::now() - start >= patience &&
        reader.state.compare_exchange_strong(state, Reader::kLeftBehind))
      return reader.thread.detach();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  reader.thread.join();
}

void Pipeline::own_memory(int slots) {
  const auto lines = [](size_t bytes) {
    return (bytes + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  };
  CHECK(slots > 0, "{} slots", slots);
  size_t each = 0;
  for (size_t i = 0; i < writer_.size(); ++i) each += lines(writer_.desc(i).bytes());
  memory_.resize(static_cast<size_t>(slots) * each);
  CacheLine* next = memory_.data();
  for (int k = 0; k < slots; ++k) {
    Slot& slot = spec_.memory.emplace_back();
    for (size_t i = 0; i < writer_.size(); ++i) {
      slot.push_back(next);
      next += lines(writer_.desc(i).bytes());
    }
  }
}

void Pipeline::look_again() {
  { const std::lock_guard lock(mutex_); }  // a reader that has looked before is asleep by now
  space_.notify_all();
}

const Batch& Pipeline::next() {
  CHECK(remaining() > 0, "next() after the last of {} batches", given_);
  if (spec_.threads == 0) {
    const auto start = std::chrono::steady_clock::now();
    SlotState& slot = slot_of(given_);
    slot.batch.id = order_->id(given_);
    for (int64_t first = 0; first < slot.batch.id.count; first += spec_.chunk)
      fill({given_, first, std::min<int64_t>(spec_.chunk, slot.batch.id.count - first)},
           inline_reader_);
    last_wait_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } else {
    last_wait_ = await(given_);
  }
  total_wait_ += last_wait_;
  return slot_of(given_++).batch;
}

// Time for which the process was stopped does not count as waiting for data.
double Pipeline::await(int64_t k) {
  RunningTime waited;
  std::unique_lock lock(mutex_);
  if (released_ < k) {
    slot_of(released_).ready = false;
    released_ = k;
    space_.notify_all();
  }
  SlotState& slot = slot_of(k);
  const std::chrono::duration<double> limit(spec_.timeout_seconds), look = RunningTime::kLook;
  const auto answered = [&] { return slot.ready || failure_; };
  while (!filled_.wait_for(lock, std::min(look, limit), answered)) {
    if (waited.seconds() < limit.count()) continue;
    timed_out_ = true;
    const Position at = order_->id(k).position;
    throw IoError(
        fmt::format("no data for {:.0f} s: epoch {} step {} replica {} is still being read by {} "
                    "threads; does the file system of the data set respond?",
                    spec_.timeout_seconds, at.epoch, at.step, at.replica, spec_.threads));
  }
  if (!slot.ready) std::rethrow_exception(failure_);
  return waited.seconds();
}

bool Pipeline::claimable() const {
  return claimed_.batch < order_->batches() &&
         claimed_.batch < released_ + static_cast<int64_t>(slots_.size());
}

Pipeline::Chunk Pipeline::claim() {
  const int64_t k = claimed_.batch;
  SlotState& slot = slot_of(k);
  if (claimed_.first == 0) {
    slot.batch.id = order_->id(k);
    slot.unfinished_chunks = (slot.batch.id.count + spec_.chunk - 1) / spec_.chunk;
  }
  const Chunk chunk{k, claimed_.first,
                    std::min<int64_t>(spec_.chunk, slot.batch.id.count - claimed_.first)};
  claimed_.first += chunk.count;
  if (claimed_.first == slot.batch.id.count) claimed_ = {.batch = k + 1};
  return chunk;
}

/// Returns false if this reader was left behind: it must not touch the Pipeline then.
bool Pipeline::fill(const Chunk& chunk, Reader& reader) {
  const Batch& batch = slot_of(chunk.batch).batch;
  const int64_t began = processor_ns();
  std::array<int64_t, kMaxChunk> indices;
  order_->indices(chunk.batch, chunk.first,
                  std::span(indices).first(static_cast<size_t>(chunk.count)));
  for (int64_t i = 0; i < chunk.count && !stop_; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)], position = chunk.first + i;
    const auto epoch = batch.id.augment ? std::optional(batch.id.position.epoch) : std::nullopt;
    if (writer_.reads_rows()) writer_.wanted_rows(epoch, index, reader.rows);
    reader.state = Reader::kReading;
    std::exception_ptr failure;
    try {
      if (writer_.reads_rows())
        dataset_.read_rows(index, reader.sample, reader.rows);
      else
        dataset_.read(index, reader.sample);
    } catch (...) {
      failure = std::current_exception();
    }
    int state = Reader::kReading;
    if (!reader.state.compare_exchange_strong(state, Reader::kWorking)) return false;
    if (failure) std::rethrow_exception(failure);
    writer_.write(reader.sample, epoch, index, position, batch.tensors);
  }
  reading_ns_ += processor_ns() - began;
  return true;
}

void Pipeline::finish(const Chunk& chunk) {
  SlotState& slot = slot_of(chunk.batch);
  if (--slot.unfinished_chunks > 0) return;
  slot.ready = true;
  filled_.notify_one();
}

void Pipeline::read_until_stopped(Reader& reader) {
  prefer_computing_threads();
  std::unique_lock lock(mutex_);
  for (;;) {
    space_.wait(lock, [&] { return stop_ || failure_ || claimable(); });
    if (stop_ || failure_) return;
    const Chunk chunk = claim();
    lock.unlock();
    try {
      if (!fill(chunk, reader)) return;
    } catch (...) {
      lock.lock();
      if (!failure_) failure_ = std::current_exception();
      filled_.notify_one();
      space_.notify_all();
      return;
    }
    lock.lock();
    finish(chunk);
  }
}

}  // namespace tutti::data
