#pragma once
// Request: a collective of a distribution from its start to its completion, and the table in which
// a program's CommReq* is looked up.

#include <map>
#include <memory>

#include "tutti/mlsl/plan_cache.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {

class Request {
 public:
  /// Of a slot of `cache`, started.
  Request(std::shared_ptr<PlanCache> cache, PlanCache::Slot& slot);
  /// Of an exchange in the group of `cache` that is used only once.
  Request(std::shared_ptr<PlanCache> cache, std::unique_ptr<Unplanned> once);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool test();  ///< true when complete; moves on whatever is in flight
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

/// The requests that a program has not seen complete. All throw ConfigError for a pointer that is
/// none.
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
