#include "backend.h"

#include <utility>

#include "progress_thread.h"

namespace tutti_torch {
namespace {

void* data_of(const at::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

}  // namespace

TuttiBackend::TuttiBackend(const Group::Options& options)
    : Backend(options.rank, options.size), group_(std::make_shared<Group>(options)),
      plans_(std::make_unique<PlanCache>(group_)) {
  ProgressThread::wanted();  // throws before anything is asked for
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
    ProgressThread::get().add(work);  // for what was started
    throw;
  } catch (...) {
    ProgressThread::get().add(work);
    throw;
  }
  if (call.later && !work->advance_with_peers()) ProgressThread::get().add(work);
  return work;
}

void TuttiBackend::start(TuttiWork& work, const Signature& signature, const at::Tensor& input,
                         const at::Tensor& output) {
  if (signature.count == 0 && signature.counts.empty()) return;
  work.start(plans_->take(signature), data_of(input), data_of(output));
}

void TuttiBackend::start(TuttiWork& work, const Blocks& blocks, const at::Tensor& input,
                         const at::Tensor& output) {
  work.start(make_slot(make_plan(group(), blocks)), data_of(input), data_of(output));
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
