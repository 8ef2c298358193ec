#pragma once
// Request: a collective of a distribution from its start to its completion, and the table that
// finds it by a program's CommReq*.

#include <map>
#include <memory>

#include "tutti/mlsl/plan_cache.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {

class Request {
 public:
  /// Takes a slot of `cache` whose plan has been started.
  Request(std::shared_ptr<PlanCache> cache, PlanCache::Slot& slot);
  /// Takes an exchange in the group of `cache` that is used only once.
  Request(std::shared_ptr<PlanCache> cache, std::unique_ptr<Unplanned> once);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool test();  ///< true when complete; progresses all operations in flight
  void wait();
  api::CommReq* handle() { return &handle_; }

 private:
  comm::Operation& operation() const {
    return once_ ? once_->operation() : slot_->planned->operation();
  }
  void complete();

  api::CommReq handle_ = 0;
  std::shared_ptr<PlanCache> cache_;
  PlanCache::Slot* slot_ = nullptr;  // until completion
  std::unique_ptr<Unplanned> once_;  // until completion
};

/// The requests that the program has not yet seen complete. All calls throw ConfigError for a
/// pointer that is not in the table.
class RequestTable {
 public:
  api::CommReq* add(std::unique_ptr<Request> request);
  void wait(api::CommReq* handle);
  bool test(api::CommReq* handle);
  void wait_for_all();

 private:
  Request& find(api::CommReq* handle) const;
  std::map<api::CommReq*, std::unique_ptr<Request>> requests_;
};

}  // namespace tutti::mlsl
