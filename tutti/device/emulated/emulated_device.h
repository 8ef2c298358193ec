#pragma once
// The emulated device: a GPU for machines without one. Kernels run on the host (block.h), and what
// a program may not rely on does not happen by chance: nothing that is put on a stream happens
// before somebody waits, and then as late as events allow; memory begins as NaN; code of the host
// that touches it crashes. A seed decides all that has no order, so that several seeds show what
// is missing.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tutti/device/device.h"
#include "tutti/device/emulated/sectors.h"
#include "tutti/device/libraries.h"

namespace tutti::device {

struct EmulatedOptions {
  /// Decides the order of streams, blocks and threads; 0: their natural order, which hides most
  /// faults.
  uint64_t seed = 1;
  size_t memory_bytes = size_t{4} << 30;
  /// Makes that call fail, of all that can, counted from 1; 0: none.
  int64_t failing_call = 0;
  /// Host work may touch memory of the device (DeviceFacts).
  bool host_work_reads_memory = true;
  /// The kernels that were compiled with emulated/device_code.h.
  std::span<const DeviceFunction> functions = {};
};

/// A device with a view for tests.
class EmulatedDevice : public Device {
 public:
  /// Returns how many calls there were that can fail.
  virtual int64_t calls() const = 0;
  /// From now on counts what kernels read and write through load() and store(), from zero, and
  /// looks whether all of it is memory in use. Kernels become slow by that. Without it only memory
  /// that is not of the device at all is an error.
  virtual void count_sectors() = 0;
  virtual SectorCounts sectors() const = 0;
  /// Gives the device libraries, which stand in for those of a real one.
  virtual void set_libraries(std::unique_ptr<Libraries> libraries) = 0;
};

/// Throws DeviceError if the system has no range of addresses for its memory.
std::unique_ptr<EmulatedDevice> make_emulated_device(const EmulatedOptions& options);

}  // namespace tutti::device
