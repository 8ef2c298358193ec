#include "tutti/train/loop/run_checkpoints.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/exchange/arena_message.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/variables.h"
#include "tutti/train/network/stage_tensors.h"
#include "tutti/train/settings/device_settings.h"

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
  run.finish_checkpoint = [this] { leave(run_.together); };
}

RunCheckpoints::~RunCheckpoints() {
  run_.writes_here = {};
  run_.finish_checkpoint = {};
  queue_.abandon();  // so that the thread ends
  if (flight_ && !flight_->publishing && run_.first())
    log::warn("the checkpoint of step {} was not complete when the run ended: it is dropped",
              flight_->step);
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

/// The memory for copies: what checkpoint.memory allows, else what plan.memory leaves, if that is
/// not a limit of a device, else a quarter of what the node has free for each of its ranks.
size_t RunCheckpoints::most_copied() const {
  if (run_.config.checkpoint.memory > 0) return static_cast<size_t>(run_.config.checkpoint.memory);
  const plan::Plan& plan = run_.network().training;
  if (const size_t limit = plan.options.memory.bytes; limit > 0 && !on_device(run_.config.run))
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
    // A full disk must have space again before the next line of the record.
    std::error_code ignored;
    if (files.count > 0)
      std::filesystem::remove(keep::rank_file_path(place, run_.comm.rank()), ignored);
    flight.writer.reset();
    throw;
  }
}

/// Where a rank has no space for all copies it waits for its disk, and the others wait for it here,
/// as long as it lives, before the next step has a time-out.
void RunCheckpoints::copy(size_t written_here) {
  const bool waits = run_.comm.most(int{!queue_.has_space_for_all()}) > 0;
  for (size_t f = 0; f < flight_->files.size(); ++f) {
    if (f < written_here)
      queue_.put(flight_->files[f]);
    else
      for (const keep::TensorRef& tensor : flight_->files[f])
        if (tensor.give) tensor.give([](std::span<const std::byte>) {});
  }
  if (waits) meet_patiently();
}

void RunCheckpoints::meet_patiently() {
  constexpr int kTag = 14'901;  // after the tensors of stages
  std::array<std::byte, 1> sign{};
  const auto send = [&](int peer) {
    exchange::send_arena(run_.comm, "a copied checkpoint", peer, kTag, sign);
  };
  const auto receive = [&](int peer) {
    exchange::receive_arena(run_.comm, "a copied checkpoint", peer, kTag, sign);
  };
  if (!run_.first()) {
    send(0);
    return receive(0);
  }
  for (int rank = 1; rank < run_.comm.size(); ++rank) receive(rank);
  for (int rank = 1; rank < run_.comm.size(); ++rank) send(rank);
}

void RunCheckpoints::begin(keep::SavedRun saved, bool best) {
  flight_->best = best;
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
  flight_->published = std::async(std::launch::async, [this, &flight = *flight_, keep] {
    std::string path = flight.writer->publish(flight.best, keep).string();
    // Not with the next vote: who watches the ranks must know of it when they are killed before.
    if (run_.spec.checkpoint_written) run_.spec.checkpoint_written();
    return path;
  });
}

/// Not part of attempt(): the checkpoint is whole, and an error of the record ends the run.
void RunCheckpoints::note_published(const std::string& path) {
  double all[] = {static_cast<double>(flight_->bytes)};
  run_.comm.sum(all);
  run_.left.last = flight_->step;
  if (run_.spec.checkpoint_written && !run_.first()) run_.spec.checkpoint_written();
  const double until = RunClock::since(flight_->began);
  const trace::CheckpointRecord line{.epoch = flight_->epochs,
                                     .step = flight_->step,
                                     .path = path,
                                     .bytes = static_cast<int64_t>(all[0]),
                                     .seconds = flight_->ends ? until : flight_->stood_still,
                                     .until_complete = until};
  flight_.reset();
  if (run_.first()) run_.reporter->record().append(line);
}

void RunCheckpoints::end_phase(bool ends) {
  if (!flight_->publishing) {
    attempt(ends, [&] {
      comm::on_each(run_.comm, "writing a checkpoint",
                    [&] { flight_->bytes = flight_->written.get(); });
    });
    if (flight_) publish();
    return;
  }
  std::string path;
  attempt(ends, [&] {
    path = comm::decide(run_.comm, "publishing a checkpoint",
                        [&] { return flight_->published.get(); });
  });
  if (flight_) note_published(path);
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
    if (ends) throw IoError(fmt::format("{}; {}", error.what(), run_.what_is_left(step)));
    if (run_.first())
      log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", step,
                error.what(), run_.what_is_left(step));
  } catch (...) {
    queue_.abandon();
    flight_.reset();
    throw;
  }
  run_.together = together;
}

void RunCheckpoints::go_on() {
  if (flight_ && !works_anywhere()) end_phase(false);
}

void RunCheckpoints::finish(bool ends) {
  while (flight_) end_phase(ends);
}

void RunCheckpoints::write(bool best, bool ends) {
  const auto began = RunClock::Clock::now();
  const trace::ScopedSpan span = run_.span("checkpoint");
  finish(false);
  run_.settle();
  keep::SavedRun saved;
  for (const keep::KeptState& state : states_)
    if (state.save) state.save(saved);
  flight_.emplace();
  flight_->step = run_.step;
  flight_->epochs = run_.epochs_done();
  flight_->left_before = run_.left;
  flight_->began = began;
  flight_->ends = ends;
  attempt(ends, [&] { begin(std::move(saved), best); });
  if (flight_) flight_->stood_still = RunClock::since(began);
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
    log::warn("a checkpoint was not finished: {}", error.what());
  }
}

}  // namespace tutti::train
