#include "tutti/mlsl/request.h"

namespace tutti::mlsl {

Request::Request(std::shared_ptr<PlanCache> cache, PlanCache::Slot& slot)
    : cache_(std::move(cache)), slot_(&slot) {
  slot.user = this;
}

Request::Request(std::shared_ptr<PlanCache> cache, std::unique_ptr<Unplanned> once)
    : cache_(std::move(cache)), once_(std::move(once)) {}

Request::~Request() {
  if (slot_ != nullptr) slot_->user = nullptr;
}

bool Request::test() {
  if (slot_ == nullptr && !once_) return true;
  if (!cache_->group().job().test(operation())) return false;
  complete();
  return true;
}

void Request::wait() {
  if (slot_ == nullptr && !once_) return;
  operation().wait();
  complete();
}

void Request::complete() {
  once_.reset();
  if (slot_ == nullptr) return;
  slot_->user = nullptr;
  slot_ = nullptr;
}

api::CommReq* RequestTable::add(std::unique_ptr<Request> request) {
  api::CommReq* const handle = request->handle();
  requests_.emplace(handle, std::move(request));
  return handle;
}

Request& RequestTable::find(api::CommReq* handle) const {
  const auto at = requests_.find(handle);
  demand(at != requests_.end(),
         "this request does not exist (any more): it is gone after Wait, or after Test has said "
         "that it is complete");
  return *at->second;
}

void RequestTable::wait(api::CommReq* handle) {
  find(handle).wait();
  requests_.erase(handle);
}

bool RequestTable::test(api::CommReq* handle) {
  if (!find(handle).test()) return false;
  requests_.erase(handle);
  return true;
}

void RequestTable::wait_for_all() {
  for (const auto& [handle, request] : requests_) request->wait();
  requests_.clear();
}

}  // namespace tutti::mlsl
