#pragma once
// Other work beside `tutti bench`: looked for before numbers are printed one after another, and
// while they are measured.

#include <functional>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/machine_watch.h"

namespace tutti {

class BenchWatch {
 public:
  /// Says a warning on rank 0. Of a table that is its own output, since a line of the log may come
  /// between two rows.
  using Say = std::function<void(const std::string&)>;
  /// Collective. Rests for a quarter of a second, and warns of what others do meanwhile.
  explicit BenchWatch(comm::Communicator& communicator, Say say = log_warning);
  /// Collective. Warns of what they have done since.
  void end();

 private:
  static void log_warning(const std::string& text);

  comm::Communicator& communicator_;
  Say say_;
  MachineWatch watch_;
};

}  // namespace tutti
