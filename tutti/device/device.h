#pragma once
// Device: the seam between the program and an accelerator. device/emulated/ and device/cuda/
// implement it; nothing above device/ and backend/gpu/ knows which of them it has.
//
// Work is put on streams and happens later, in the order of its stream; an event orders streams.
// Device::wait is the only call that waits for a device, and it has a time-out. Memory of a device
// may not be touched by code of the host; pinned memory may, while no work under way uses it. One
// thread at a time uses a device and what is made by it, unless a declaration says otherwise. What
// a device has made must end before it. All calls throw DeviceError, whose text names the device,
// what was asked and, where there is one, the remedy; wait() also throws what work of the host has
// thrown.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tutti::device {

/// Facts that are known of a device before it is used.
struct DeviceFacts {
  std::string kind;             ///< "cuda", "emulated"
  int number = 0;               ///< among the devices that this process may see
  std::string name;             ///< the product's: "NVIDIA H100 80GB HBM3"
  std::string driver, runtime;  ///< versions, "580.159", "13.0"; empty: there is none
  std::string libraries;        ///< the maker's, with versions: "cuDNN 9.19.0, cuBLASLt 13.1.0"
  int architecture = 0;         ///< 90 for sm_90; 0: none
  int multiprocessors = 0;
  size_t memory_bytes = 0;  ///< memory of the whole device
  size_t cache_bytes = 0;   ///< size of its last level of cache
  std::string properties;   ///< JSON, as cuDNN describes a device; empty: not known
  /// Host work may read and write memory of the device. Only the emulated device has that.
  bool host_work_reads_memory = false;
};

enum class MemoryKind : uint8_t {
  device,  ///< memory of the device, for its kernels and copies alone
  pinned,  ///< memory of the host; copies to and from it do not wait for a page
};

class Device;

/// Owns memory of a device or pinned memory; move-only. Work under way must not use it when it
/// ends. Device memory begins with undefined contents, at a multiple of 256.
class Memory {
 public:
  Memory() = default;
  /// Throws DeviceError, which says how much was asked for and how much is free.
  Memory(Device& device, size_t bytes, MemoryKind kind = MemoryKind::device);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::device;
};

/// A moment of a stream, each time it is recorded.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that was recorded and can be put on a stream again and again, with the arguments that it
/// had: numbers that change belong into memory. It keeps the memory's addresses, not the memory,
/// and must not end while a replay of it is under way.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual size_t launches() const = 0;  ///< kernels, copies, fills and host work
};

/// Work of the host in the order of a stream, on a thread of the device's: it calls nothing of the
/// device. What it throws comes out of the next wait.
class HostWork {
 public:
  virtual ~HostWork() = default;
  virtual void run() = 0;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A kernel as the device's own build of it made it. Its only argument is one trivially copyable
/// struct, passed by value.
struct DeviceFunction {
  std::string_view name;        ///< lives as long as the program
  const void* entry = nullptr;  ///< known to the device alone
  unsigned threads = 0;         ///< threads of a block
  size_t argument_bytes = 0;
  /// Its threads never meet, so that an emulated device may run one after the other.
  bool flat = false;
};

/// Largest size of a kernel's arguments.
constexpr size_t kMostArgumentBytes = 4096;

struct Launch {
  const DeviceFunction* function = nullptr;
  Dim3 grid;
  const void* arguments = nullptr;  ///< function->argument_bytes, copied by the call
};

/// A queue of work of a device. All pointers are to memory of the device or pinned memory.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::string_view name() const = 0;
  /// Copies between any two places that do not overlap.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, std::byte value, size_t bytes) = 0;
  virtual void launch(const Launch& launch) = 0;
  virtual void host(std::shared_ptr<HostWork> work) = 0;
  virtual void record(Event& event) = 0;
  /// Work that is put on this stream from now on begins after the event's last record so far.
  virtual void wait(const Event& event) = 0;

  /// From now on work is noted and does not happen, on this stream and on those that wait for an
  /// event recorded by it; these must be waited for by this stream before the recording ends.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
  virtual void replay(const Recording& recording) = 0;

  /// Returns what the libraries of the device's maker call a stream; null on an emulated device.
  virtual void* native() { return nullptr; }
};

/// Counts of what was asked of a device since it was opened, for tests and the record.
struct DeviceCounts {
  int64_t waits = 0;     ///< times that the host has waited for the device
  int64_t launches = 0;  ///< kernels, those of replays included
  int64_t copies = 0, copied_bytes = 0;
  int64_t host_work = 0;
  int64_t replays = 0;
  size_t bytes = 0, most_bytes = 0;  ///< memory of the device in use, now and at most
};

class Libraries;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual std::unique_ptr<Stream> make_stream(std::string_view name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Returns once the event's last record has happened. Throws DeviceError at a time-out, which
  /// names `what` was waited for, and for work that has failed before: a device whose work has
  /// failed is lost, and all further calls say so.
  virtual void wait(Event& event, std::string_view what) = 0;
  /// Returns whether wait() would return at once.
  virtual bool done(Event& event) = 0;
  virtual size_t free_bytes() = 0;
  virtual DeviceCounts counts() const = 0;
  /// Returns the own kernels that were built for this device.
  virtual std::span<const DeviceFunction> functions() const = 0;
  /// Returns the libraries of the device's maker (libraries.h), which belong to the device; null:
  /// there are none for it.
  virtual Libraries* libraries() { return nullptr; }
  /// Returns the energy that the device has used since it was opened, in joules; negative: unknown.
  virtual double joules() { return -1; }
  /// Seconds after which wait() gives up; the device may then be lost.
  double time_limit = 600;

 protected:
  friend class Memory;
  virtual std::byte* allocate(size_t bytes, MemoryKind kind) = 0;
  /// Never throws.
  virtual void release(std::byte* data, size_t bytes, MemoryKind kind) noexcept = 0;
};

/// Waits until everything that was put on the stream so far is done.
void settle(Device& device, Stream& stream, std::string_view what);

}  // namespace tutti::device
