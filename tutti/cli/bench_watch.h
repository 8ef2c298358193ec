#pragma once
// Other work beside `tutti bench`: looked for before numbers are printed one after another, and
// while they are measured.

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/machine_watch.h"

namespace tutti {

class BenchWatch {
 public:
  /// Collective. Rests for a quarter of a second, and warns of what others do meanwhile.
  explicit BenchWatch(comm::Communicator& communicator);
  /// Collective. Warns of what they have done since.
  void end();

 private:
  comm::Communicator& communicator_;
  MachineWatch watch_;
};

}  // namespace tutti
