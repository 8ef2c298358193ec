#include "tutti/device/emulated/emulation.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/device/emulated/emulated_stream.h"
#include "tutti/device/emulated/grid.h"

namespace tutti::device {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of no known type";
  }
}

}  // namespace

Emulation::Emulation(const EmulatedOptions& options)
    : options_(options), facts_{.kind = "emulated",
                                .name = "emulated GPU",
                                .driver = {},
                                .runtime = {},
                                .libraries = {},
                                // A result that depends on it differs between seeds.
                                .multiprocessors = 4 + static_cast<int>(options.seed % 5),
                                .memory_bytes = options.memory_bytes,
                                .properties = {},
                                .host_work_reads_memory = options.host_work_reads_memory},
      memory_(options.memory_bytes), chance_(options.seed), turns_(chance_) {}

void Emulation::begin_call(std::string_view what) {
  if (in_host_work_)
    throw DeviceError(fmt::format("emulated device: {}: host work must not call its device", what));
  if (!lost_.empty())
    throw DeviceError(
        fmt::format("emulated device: {}: the device is lost, because: {}", what, lost_));
  if (++calls_ == options_.failing_call)
    throw DeviceError(
        fmt::format("emulated device: {}: call {} fails because it was asked to", what, calls_));
}

void Emulation::check_memory(const void* at, size_t bytes, std::string_view what) const {
  if (!memory_.holds(at, bytes))
    throw DeviceError(
        fmt::format("emulated device: {} of {} bytes at {} is not within memory of "
                    "the device or pinned memory; copy through pinned memory",
                    what, bytes, at));
}

std::unique_ptr<Stream> Emulation::make_stream(std::string_view name) {
  begin_call("making a stream");
  return std::make_unique<EmulatedStream>(*this, name);
}

std::unique_ptr<Event> Emulation::make_event() {
  begin_call("making an event");
  return std::make_unique<EmulatedEvent>();
}

std::byte* Emulation::allocate(size_t bytes, MemoryKind kind) {
  begin_call("allocating memory");
  if (recorder_)
    throw DeviceError(
        fmt::format("emulated device: {} bytes are allocated while work is recorded; "
                    "allocate them before",
                    bytes));
  return memory_.allocate(bytes, kind);
}

void Emulation::release(std::byte* data, size_t, MemoryKind kind) noexcept {
  memory_.release(data, kind);
}

DeviceCounts Emulation::counts() const {
  DeviceCounts counts = counts_;
  counts.bytes = memory_.bytes_in_use();
  counts.most_bytes = memory_.most_bytes_in_use();
  return counts;
}

std::shared_ptr<Moment> Emulation::awaited(Event& event) const {
  if (recorder_)
    throw DeviceError(
        "emulated device: the host waits for an event while work is recorded; wait before or "
        "after the recording");
  std::shared_ptr<Moment> moment = static_cast<EmulatedEvent&>(event).last;
  if (moment && moment->recording != 0)
    throw DeviceError(
        "emulated device: the host waits for an event that was recorded within a recording; record "
        "it on the stream after the replay");
  return moment;
}

void Emulation::wait(Event& event, std::string_view what) {
  begin_call(what);
  const std::shared_ptr<Moment> moment = awaited(event);
  ++counts_.waits;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (moment && !moment->happened && !failure_) {
    if (std::chrono::duration<double>(Clock::now() - begin).count() >= time_limit) {
      memory_.close();
      throw DeviceError(fmt::format("emulated device: {} did not come within {} s: {}", what,
                                    time_limit, turns_.to_string()));
    }
    step();
  }
  memory_.close();
  if (failure_) fail();
}

bool Emulation::done(Event& event) {
  begin_call("asking for an event");
  const std::shared_ptr<Moment> moment = awaited(event);
  const uint32_t most = chance_.natural() ? 1 : chance_.below(3);
  for (uint32_t i = 0; i < most && moment && !moment->happened && !failure_; ++i) step();
  memory_.close();
  return !moment || moment->happened || failure_;
}

void Emulation::fail() {
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lost_ = text_of(failure);
  std::rethrow_exception(failure);
}

void Emulation::step() {
  try {
    if (const std::optional<Work> work = turns_.next())
      std::visit(
          [this](const auto& one) {
            if constexpr (requires { run(one); }) run(one);
          },
          *work);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Emulation::run(const KernelWork& work) {
  memory_.open();
  run_grid({&work.function, work.grid, work.arguments.data()},
           {.memory = &memory_, .sectors = sectors_ ? &*sectors_ : nullptr}, block_, chance_);
}

void Emulation::run(const CopyWork& work) {
  check_memory(work.to, work.bytes, "a copy's target, when the copy happens,");
  check_memory(work.from, work.bytes, "a copy's source, when the copy happens,");
  memory_.open();
  std::memcpy(work.to, work.from, work.bytes);
}

void Emulation::run(const FillWork& work) {
  check_memory(work.to, work.bytes, "a fill's target, when the fill happens,");
  memory_.open();
  std::memset(work.to, std::to_integer<int>(work.value), work.bytes);
}

void Emulation::run(const HostFunctionWork& work) {
  if (options_.host_work_reads_memory)
    memory_.open();
  else
    memory_.close();
  in_host_work_ = true;
  try {
    work.work->run();
  } catch (...) {
    in_host_work_ = false;
    throw;
  }
  in_host_work_ = false;
}

void Emulation::close(const std::shared_ptr<Queue>& queue) {
  queue->closed = true;
  if (records(queue)) recorder_.reset();
}

void Emulation::put(const std::shared_ptr<Queue>& queue, Work work) {
  if (records(queue)) return recorder_->put(queue, std::move(work));
  count_work(work, counts_);
  queue->work.push_back(std::move(work));
}

std::shared_ptr<Moment> Emulation::record(const std::shared_ptr<Queue>& queue) {
  if (records(queue)) return recorder_->record(queue);
  auto moment = std::make_shared<Moment>();
  queue->work.emplace_back(RecordWork{moment});
  return moment;
}

void Emulation::wait(const std::shared_ptr<Queue>& queue, const std::shared_ptr<Moment>& moment) {
  if (recorder_ && moment->recording == recorder_->number()) return recorder_->wait(queue, moment);
  if (moment->recording != 0)
    throw DeviceError(
        fmt::format("emulated device: stream '{}' waits for an event that was "
                    "recorded within a recording that has ended",
                    queue->name));
  if (records(queue))
    throw DeviceError(
        fmt::format("emulated device: stream '{}', which is recorded, waits for an "
                    "event from outside of the recording; let the replay wait",
                    queue->name));
  queue->work.emplace_back(WaitWork{moment});
}

void Emulation::begin_recording(const std::shared_ptr<Queue>& queue) {
  if (recorder_)
    throw DeviceError(
        fmt::format("emulated device: a recording begins on stream '{}' before another has ended",
                    queue->name));
  recorder_.emplace(++recordings_, queue);
}

std::shared_ptr<const RecordedWork> Emulation::end_recording(const std::shared_ptr<Queue>& queue) {
  if (!recorder_ || !recorder_->began_on(queue))
    throw DeviceError(
        fmt::format("emulated device: no recording was begun on stream '{}'", queue->name));
  const Recorder recorder = *std::exchange(recorder_, std::nullopt);
  begin_call("ending a recording");  // also where this fails the recording has ended
  return recorder.end();
}

std::unique_ptr<EmulatedDevice> make_emulated_device(const EmulatedOptions& options) {
  name_faults();
  return std::make_unique<Emulation>(options);
}

}  // namespace tutti::device
