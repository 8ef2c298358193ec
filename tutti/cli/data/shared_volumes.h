#pragma once
// Keeps volumes of neurons once per node, in shared memory, for all of its ranks
// (data.cache.memory).

#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/data/neurons/neuron_content.h"

namespace tutti {

class SharedVolumes final : public data::NodeMemory {
 public:
  /// Collective. `bytes`: on each node. `name`: of the job, different from any other job's.
  SharedVolumes(comm::Communicator& communicator, std::string name, int64_t bytes);

  /// Throws ConfigError where the volumes of all parts need more memory than there is.
  Filled share(const std::function<std::string(const Take& take)>& fill) override;

 private:
  comm::Communicator& communicator_;
  std::unique_ptr<comm::Communicator> node_;  ///< the ranks of this node
  std::string name_;
  int64_t left_;
  int parts_ = 0;
};

}  // namespace tutti
