#pragma once
// Detects other work on the machine beside `tutti bench`: before numbers are printed one after
// another, and while they are measured.

#include <functional>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/machine_watch.h"

namespace tutti::cli {

class BenchWatch {
 public:
  /// Prints a warning on rank 0. A table passes its own output, since a line of the log may come
  /// between two rows.
  using Say = std::function<void(const std::string&)>;
  /// Collective. Rests for a quarter of a second and warns of other work in that time.
  explicit BenchWatch(comm::Communicator& communicator, Say say = log_warning);
  /// Collective. Warns of other work since then.
  void end();

 private:
  static void log_warning(const std::string& text);

  comm::Communicator& communicator_;
  Say say_;
  device::MachineWatch watch_;
};

}  // namespace tutti::cli
