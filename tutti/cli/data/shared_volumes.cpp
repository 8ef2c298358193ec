#include "tutti/cli/data/shared_volumes.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/data/store/shared_memory.h"

namespace tutti {

SharedVolumes::SharedVolumes(comm::Communicator& communicator, std::string name, int64_t bytes)
    : communicator_(communicator), node_(communicator.split(communicator.node(communicator.rank()),
                                                            communicator.rank(), "node")),
      name_(std::move(name)), left_(bytes) {}

data::NodeMemory::Filled SharedVolumes::share(
    const std::function<std::string(const Take& take)>& fill) {
  const std::string name =
      fmt::format("{}-{}-{}", name_, communicator_.node(communicator_.rank()), parts_++);
  const bool fills = node_->rank() == 0;
  std::shared_ptr<data::SharedMemory> memory;
  std::string text;
  const auto take = [&](size_t bytes) {
    if (static_cast<int64_t>(bytes) > left_)
      throw ConfigError(fmt::format(
          "data.cache.memory: volumes and their seeds need {:.1f} MiB of a node's memory, and "
          "there "
          "are {:.1f} MiB left: raise it, or leave data.cache out, so that each rank has them for "
          "itself",
          static_cast<double>(bytes) / (1 << 20), static_cast<double>(left_) / (1 << 20)));
    memory = std::make_shared<data::SharedMemory>(name, bytes);
    return memory->data();
  };
  try {
    comm::on_each(communicator_, "reading volumes", [&] {
      if (fills) text = fill(take);
    });
    uint64_t bytes = memory ? memory->size() : 0;
    node_->broadcast_value(bytes, 0);
    left_ -= static_cast<int64_t>(bytes);
    text = comm::broadcast_text(*node_, text, 0);
    comm::on_each(communicator_, "sharing volumes", [&] {
      if (!fills) memory = std::make_shared<data::SharedMemory>(name, bytes);
    });
  } catch (...) {
    if (fills && memory)
      memory->remove_name();  // the name would stay in the node's memory for
                              // ever
    throw;
  }
  if (fills) memory->remove_name();
  if (communicator_.rank() == 0)
    log::info("data.cache: volumes and their seeds lie in {:.1f} MiB of each node's memory",
              static_cast<double>(memory->size()) / (1 << 20));
  return {.text = std::move(text),
          .memory = std::shared_ptr<const std::byte>(memory, memory->data())};
}

}  // namespace tutti
