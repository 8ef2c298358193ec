#pragma once
// Pieces of work of the emulated device's streams.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tutti/device/device.h"

namespace tutti::device {

/// A moment of a stream: an event has another one each time that it is recorded.
struct Moment {
  bool happened = false;
  int64_t recording = 0;      ///< number of the recording that it is part of; 0: it happens once
  std::vector<size_t> after;  ///< in a recording: how much work of each branch comes before it
};

struct KernelWork {
  DeviceFunction function;
  Dim3 grid;
  std::vector<std::byte> arguments;
};
struct CopyWork {
  void* to;
  const void* from;
  size_t bytes;
};
struct FillWork {
  void* to;
  std::byte value;
  size_t bytes;
};
struct HostFunctionWork {
  std::shared_ptr<HostWork> work;  ///< recordings share it
};
struct RecordWork {
  std::shared_ptr<Moment> moment;
};
struct WaitWork {
  std::shared_ptr<const Moment> moment;
};
struct RecordedWork;
struct ReplayWork {
  std::shared_ptr<const RecordedWork> recorded;
};
using Work = std::variant<KernelWork, CopyWork, FillWork, HostFunctionWork, RecordWork, WaitWork,
                          ReplayWork>;

/// Work that was recorded: a branch for each stream that took part. The work of the first branch
/// ends after that of all others.
struct RecordedWork {
  struct Branch {
    std::string stream;
    std::vector<Work> work;
  };
  std::vector<Branch> branches;
};

/// Adds pieces of work to `counts`, those of replays included.
void count_work(const Work& work, DeviceCounts& counts);

/// Work of one stream, or of one branch of a replay, in its order.
struct Queue {
  std::string name;
  std::deque<Work> work;
  uint32_t priority = 0;  ///< among the queues that can go on, the first with the least is next
  bool closed = false;    ///< it ends once it is empty
};

}  // namespace tutti::device
