#pragma once
// Volumes of neurons once a node, in shared memory, for all of its ranks (data.cache.memory).

#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/data/neurons/neuron_content.h"

namespace tutti {

class SharedVolumes final : public data::NodeMemory {
 public:
  /// Collective. `bytes`: of each node. `name`: of the job, unlike any other's.
  SharedVolumes(comm::Communicator& communicator, std::string name, int64_t bytes);

  /// ConfigError where the volumes of all parts need more than there is.
  Filled share(const std::function<std::string(const Take& take)>& fill) override;

 private:
  comm::Communicator& communicator_;
  std::unique_ptr<comm::Communicator> node_;  ///< the ranks of this one
  std::string name_;
  int64_t left_;
  int parts_ = 0;
};

}  // namespace tutti
