#pragma once
// Group: ranks that exchange data with each other, and how their collectives are planned.

#include <memory>

#include "tutti/mlsl/job.h"

namespace tutti::mlsl {

/// Every call except the queries is collective over the group, and blocks until all its ranks have
/// called it.
class Group {
 public:
  /// Makes the group of all ranks of the job.
  explicit Group(Job& job) : job_(job), communicator_(job.world()) {}
  Group(Job& job, std::unique_ptr<comm::Communicator> communicator)
      : job_(job), own_(std::move(communicator)), communicator_(*own_) {}

  Job& job() const { return job_; }
  comm::Communicator& communicator() const { return communicator_; }
  int index() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }

  std::unique_ptr<comm::Window> allocate(size_t bytes) { return communicator_.allocate(bytes); }
  /// Plans large collectives in chunks, as the settings say.
  std::unique_ptr<comm::CollectiveOperation> plan(comm::CollectiveSpec spec);
  void barrier() { communicator_.barrier(); }

 private:
  Job& job_;
  std::unique_ptr<comm::Communicator> own_;
  comm::Communicator& communicator_;
};

}  // namespace tutti::mlsl
