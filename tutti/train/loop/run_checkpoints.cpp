#include "tutti/train/loop/run_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/variables.h"
#include "tutti/train/network/stage_tensors.h"

namespace tutti::train {

bool needs_rank_files(Running& run) {
  const bool needs = run.training->weights().has_rows() ||
                     !run.network().compression.buckets.empty() || run.network().has_tables ||
                     run.spec.data.canvases != nullptr;
  return run.shape.grid.stages() > 1 ? run.comm.most(int{needs}) > 0 : needs;  // a stage may
}

RunCheckpoints::RunCheckpoints(Running& run, std::vector<keep::KeptState> states)
    : run_(run), states_(std::move(states)), queue_(static_cast<int>(run.config.run.threads)) {
  run.writes_here = [this] { return works_here(); };
  run.finish_checkpoint = [this] { leave(false); };
}

RunCheckpoints::~RunCheckpoints() {
  run_.writes_here = {};
  run_.finish_checkpoint = {};
  queue_.abandon();  // so that the thread ends
}

keep::CheckpointInfo RunCheckpoints::info_now(const keep::SavedRun& saved) const {
  keep::CheckpointInfo info{
      .step = run_.step,
      .epoch = run_.step / run_.shape.steps_per_epoch(),
      .epoch_position = run_.step % run_.shape.steps_per_epoch(),
      .seed = static_cast<uint64_t>(run_.config.run.seed),
      .replicas = run_.shape.replicas.replicas(),
      .ranks = run_.comm.size(),
      .precision = std::string(to_string(run_.config.run.precision)),
      .plan_choices = run_.network().training.options.choices.to_string(),
      .config = run_.spec.resolved_config,
      .run_id = run_.spec.place.run_id,
      .optimizer = std::string(to_string(run_.config.optimizer.name)),
      .state_kinds = run_.network().training.variables.state_kinds,
      .settings = run_.settings,
      .metrics = {{"wall_seconds", run_.clock.wall()}, {"train_seconds", run_.clock.train()}}};
  info.metrics.insert(saved.numbers.begin(), saved.numbers.end());
  info.learned = learned_fields(target_fields(run_.config, *run_.spec.data.train));
  return info;
}

std::vector<std::vector<keep::TensorRef>> RunCheckpoints::files_of(keep::SavedRun saved) {
  const split::PartGrid& grid = run_.shape.grid;
  std::vector<std::vector<keep::TensorRef>> files;
  files.push_back(std::move(saved.own));
  for (std::vector<keep::TensorRef>* const tensors : {&saved.model, &saved.shared}) {
    files.push_back(gather_stages(run_.comm, grid, std::move(*tensors)));
    const bool has_part = grid.stages() > 1 || grid.tensor() > 1;
    if (!run_.first() && (!has_part || grid.group() > 0)) files.back().clear();
  }
  for (std::vector<keep::TensorRef>& file : files) keep::sort_for_file(file);
  return files;
}

/// The memory for copies: what checkpoint.memory allows, else what plan.memory leaves, else a
/// quarter of what the node has free for each of its ranks.
size_t RunCheckpoints::most_copied() const {
  if (run_.config.checkpoint.memory > 0) return static_cast<size_t>(run_.config.checkpoint.memory);
  const plan::Plan& plan = run_.network().training;
  if (const size_t limit = plan.options.memory.bytes; limit > 0)
    return limit - std::min(limit, plan::planned_memory(plan).total()) + plan.options.memory.copies;
  return queue_.memory_bytes() +  // the memory that is free no longer counts it
         static_cast<size_t>(device::read_topology().available_bytes) / 4 /
             static_cast<size_t>(run_.comm.local_size());
}

uint64_t RunCheckpoints::write_files(Flight& flight, const keep::RankFiles& files,
                                     const std::filesystem::path& place,
                                     const std::vector<std::vector<keep::TensorRef>>& arriving) {
  plan::export_alone();  // the other threads are at work
  try {
    uint64_t bytes = 0;
    if (files.count > 0) bytes = keep::write_rank_file(place, files, run_.comm.rank(), arriving[0]);
    if (!flight.writer) return bytes;
    flight.writer->write(arriving[1], arriving[2]);
    return bytes + flight.writer->bytes();
  } catch (...) {
    queue_.abandon();  // so that nobody waits for space
    throw;
  }
}

void RunCheckpoints::copy(size_t written_here) {
  for (size_t f = 0; f < flight_->files.size(); ++f) {
    if (f < written_here)
      queue_.put(flight_->files[f]);
    else
      for (const keep::TensorRef& tensor : flight_->files[f])
        if (tensor.give) tensor.give([](std::span<const std::byte>) {});
  }
}

void RunCheckpoints::begin(bool best) {
  flight_.emplace();
  flight_->step = run_.step;
  flight_->epochs = run_.epochs_done();
  flight_->best = best;
  flight_->left_before = run_.left;
  flight_->began = RunClock::Clock::now();
  keep::SavedRun saved;
  for (const keep::KeptState& state : states_)
    if (state.save) state.save(saved);
  const int64_t ranks = needs_rank_files(run_) ? run_.comm.size() : 0;
  const std::string message = comm::decide(run_.comm, "beginning a checkpoint", [&] {
    run_.reporter->record().require_place();  // a folder that was removed is not made again
    flight_->writer.emplace(run_.spec.place.checkpoints, info_now(saved), ranks);
    return flight_->writer->rank_files().id + '\0' + flight_->writer->path().string();
  });
  const size_t end = message.find('\0');
  const keep::RankFiles rank_files{ranks, message.substr(0, end)};
  if (ranks == 0) saved.own.clear();
  flight_->files = files_of(std::move(saved));
  const size_t here = run_.first() ? 3 : 1;  // the first files are this rank's
  std::vector<std::vector<keep::TensorRef>> arriving;
  comm::on_each(run_.comm, "taking memory for a checkpoint", [&] {
    try {
      arriving = queue_.begin(most_copied(), {flight_->files.begin(),
                                              flight_->files.begin() + static_cast<long>(here)});
    } catch (const DeviceError& error) {
      throw IoError(error.what());
    }
  });
  flight_->written =
      std::async(std::launch::async, [this, &flight = *flight_, rank_files,
                                      place = std::filesystem::path(message.substr(end + 1)),
                                      arriving = std::move(arriving)] {
        return write_files(flight, rank_files, place, arriving);
      });
  copy(here);
  flight_->copied = true;
  run_.written_everywhere = false;
  if (best) run_.keep_best(run_.step, run_.goal.quality());
}

bool RunCheckpoints::works_here() const {
  if (!flight_) return false;
  const auto busy = [](const auto& work) {
    return work.valid() && work.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  return flight_->publishing ? busy(flight_->published) : busy(flight_->written);
}

/// Votes are taken with the question whether to stop; rounds of several steps have none.
bool RunCheckpoints::works_anywhere() {
  if (run_.comm.size() == 1) return works_here();
  if (run_.rounds->takes_several_steps()) return run_.comm.most(int{works_here()}) > 0;
  return !run_.written_everywhere;
}

void RunCheckpoints::publish() {
  flight_->publishing = true;
  run_.written_everywhere = false;
  if (!run_.first()) return;
  const auto keep = static_cast<int>(run_.config.checkpoint.keep);
  flight_->published = std::async(std::launch::async, [&flight = *flight_, keep] {
    return flight.writer->publish(flight.best, keep).string();
  });
}

void RunCheckpoints::note_published(const std::string& path) {
  double all[] = {static_cast<double>(flight_->bytes)};
  run_.comm.sum(all);
  run_.left.last = flight_->step;
  if (run_.spec.checkpoint_written) run_.spec.checkpoint_written();
  const double until = RunClock::since(flight_->began);
  if (run_.first())
    run_.reporter->record().append(
        trace::CheckpointRecord{.epoch = flight_->epochs,
                                .step = flight_->step,
                                .path = path,
                                .bytes = static_cast<int64_t>(all[0]),
                                .seconds = flight_->ends ? until : flight_->stood_still,
                                .until_complete = until});
  flight_.reset();
}

void RunCheckpoints::end_phase() {
  if (!flight_->publishing) {
    comm::on_each(run_.comm, "writing a checkpoint",
                  [&] { flight_->bytes = flight_->written.get(); });
    publish();
  } else {
    note_published(comm::decide(run_.comm, "publishing a checkpoint",
                                [&] { return flight_->published.get(); }));
  }
}

template <class Work>
void RunCheckpoints::attempt(bool ends, Work work) {
  const bool together = std::exchange(run_.together, true);
  try {
    work();
  } catch (const IoError& error) {
    queue_.abandon();
    const int64_t step = flight_->step;
    run_.left = flight_->left_before;
    flight_.reset();
    if (ends) throw IoError(fmt::format("{}; {}", error.what(), run_.what_is_left()));
    if (run_.first())
      log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", step,
                error.what(), run_.what_is_left());
  }
  run_.together = together;
}

void RunCheckpoints::go_on() {
  if (flight_ && !works_anywhere()) attempt(false, [&] { end_phase(); });
}

void RunCheckpoints::finish(bool ends) {
  while (flight_) attempt(ends, [&] { end_phase(); });
}

void RunCheckpoints::write(bool best, bool ends) {
  const auto began = RunClock::Clock::now();
  const trace::ScopedSpan span = run_.span("checkpoint");
  finish(false);
  run_.settle();
  attempt(ends, [&] { begin(best); });
  if (flight_) flight_->stood_still = RunClock::since(began);
  if (flight_) flight_->ends = ends;
  if (ends) finish(true);
  const double seconds = RunClock::since(began);
  run_.clock.add_pause(seconds);
  run_.checkpoint_seconds += seconds;
}

void RunCheckpoints::leave(bool together) noexcept {
  if (!flight_ || !flight_->copied || (run_.comm.size() > 1 && !together)) return;
  try {
    finish(false);
  } catch (const std::exception& error) {
    log::warn("the checkpoint of step {} was not finished: {}", flight_ ? flight_->step : run_.step,
              error.what());
  }
}

}  // namespace tutti::train
