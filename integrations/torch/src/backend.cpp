#include "backend.h"

#include <algorithm>
#include <utility>

#include "progress_thread.h"

namespace tutti_torch {
namespace {

using namespace std::chrono_literals;

// Time for a peer to answer that is in the same call now. Waking the progress thread takes ten
// times as long.
constexpr std::chrono::microseconds kAnswer = 20us;
// Longest wait within a call that may return before it is complete.
constexpr std::chrono::microseconds kPatience = 1ms;

void* data_of(const at::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

}  // namespace

TuttiBackend::TuttiBackend(const Group::Options& options)
    : Backend(options.rank, options.size), group_(std::make_shared<Group>(options)),
      plans_(std::make_unique<PlanCache>(group_)) {
  ProgressThread::wanted();  // throws before any communication
  init();
}

TuttiBackend::~TuttiBackend() { shutdown(); }

void TuttiBackend::shutdown() {
  const std::lock_guard lock(mutex_);
  plans_.reset();
  group_.reset();
}

Group& TuttiBackend::group() const {
  TORCH_CHECK(group_ != nullptr, "tutti: rank ", getRank(),
              ": this process group has been shut down");
  return *group_;
}

TuttiBackend::WorkPtr TuttiBackend::issue(const Call& call, const Tensors& inputs, Tensors result,
                                          c10::function_ref<void(TuttiWork&)> fill) {
  const std::lock_guard lock(mutex_);
  group().check_usable();
  auto work = c10::make_intrusive<TuttiWork>(group_, TuttiWork::Options{.type = call.type,
                                                                        .title = call.title,
                                                                        .inputs = inputs,
                                                                        .timeout = call.timeout,
                                                                        .sequence = ++sequence_});
  work->set_result(std::move(result));
  try {
    fill(*work);
  } catch (const c10::DistBackendError&) {
    group_->give_up();
    ProgressThread::get().add(work);  // for exchanges that were started
    throw;
  } catch (...) {
    ProgressThread::get().add(work);
    throw;
  }
  if (call.later) advance(call, work);
  return work;
}

// Ranks that make the same steps reach a call at nearly the same time. It is then complete before
// the program goes on, and needs no thread switch.
void TuttiBackend::advance(const Call& call, const c10::intrusive_ptr<TuttiWork>& work) {
  const bool message = call.type == c10d::OpType::SEND || call.type == c10d::OpType::RECV;
  const bool complete = work->advance_with_peers(message ? kAnswer : patience_);
  if (!complete) ProgressThread::get().add(work);
  if (!message)
    patience_ = std::clamp(complete ? 2 * patience_ : patience_ / 2, kAnswer, kPatience);
}

void TuttiBackend::start(TuttiWork& work, const Signature& signature, const at::Tensor& input,
                         const at::Tensor& output) {
  if (signature.count == 0 && signature.counts.empty()) return;
  work.start(plans_->take(signature), data_of(input), data_of(output));
}

void TuttiBackend::start(TuttiWork& work, const Blocks& blocks, const at::Tensor& input,
                         const at::Tensor& output) {
  work.start(make_slot(make_plan(group(), blocks, data_of(input), data_of(output))));
}

void TuttiBackend::start(TuttiWork& work, const Message& message, const at::Tensor& x) {
  work.start(make_slot(make_plan(group(), message)), message.send ? x.data_ptr() : nullptr,
             message.send ? nullptr : x.data_ptr());
}

TuttiBackend::WorkPtr TuttiBackend::barrier(const c10d::BarrierOptions& opts) {
  return issue({c10d::OpType::BARRIER, "tutti:barrier", opts}, {}, {},
               [&](TuttiWork& work) { work.start(plans_->take({.kind = Kind::barrier})); });
}

}  // namespace tutti_torch
