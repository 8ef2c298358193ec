#pragma once
// The one list of every event's fields: JSON writing, JSON reading and the CSV columns all walk it.
// Private to trace/. fields(event, visit) calls visit("name", member) for each field, in the
// order of the file.

#include "tutti/trace/record.h"

namespace tutti::trace::record {

/// Satisfied by an event to write and by one to read into.
template <class T, class Event>
concept Is = std::is_same_v<std::remove_const_t<T>, Event>;

template <class Event, class Visit>
void target_fields(Event& e, Visit&& visit) {
  visit("metric", e.metric);
  visit("value", e.value);
  visit("higher_is_better", e.higher_is_better);
}

template <Is<RunStart> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("run_id", e.run_id);
  visit("time_iso", e.time_iso);
  visit("model", e.model);
  visit("dataset", e.dataset);
  visit("precision", e.precision);
  visit("ranks", e.ranks);
  visit("replicas", e.replicas);
  visit("local_batch", e.local_batch);
  visit("global_batch", e.global_batch);
  visit("train_samples", e.train_samples);
  visit("validation_samples", e.validation_samples);
  visit("spatial", e.spatial);
  visit("data_nodes", e.data_nodes);
  visit("threads_per_rank", e.threads_per_rank);
  visit("progress", e.progress);
  visit("hosts", e.hosts);
  visit("cores_per_host", e.cores_per_host);
  visit("oversubscribed", e.oversubscribed);
  visit("seed", e.seed);
  visit("parameters", e.parameters);
  visit("flop_per_sample", e.flop_per_sample);
  visit("synchronisation", e.synchronisation);
  visit("slowed", e.slowed);
  visit("replayed_on", e.replayed_on);
  visit("plan_hash", e.plan_hash);
  visit("planned_bytes", e.planned_bytes);
  visit("memory_limit_bytes", e.memory_limit_bytes);
  visit("result_bytes", e.result_bytes);
  visit("result_bytes_if_kept", e.result_bytes_if_kept);
  visit("results_again", e.results_again);
  visit("flop_again", e.flop_again);
  visit("version", e.version);
  visit("git", e.git);
  visit("library", e.library);
  visit("library_sha256", e.library_sha256);
  visit("compiler", e.compiler);
  visit("mpi", e.mpi);
  visit("onednn", e.onednn);
  visit("device", e.device);
  visit("device_name", e.device_name);
  visit("device_driver", e.device_driver);
  visit("device_runtime", e.device_runtime);
  visit("device_libraries", e.device_libraries);
  visit("device_memory_bytes", e.device_memory_bytes);
  visit("machine", e.machine);
  visit("binding", e.binding);
  visit("config_path", e.config_path);
  visit("command", e.command);
  visit("resume_step", e.resume_step);
  visit("changes", e.changes);
  visit("metric", e.metric);
  visit("higher_is_better", e.higher_is_better);
  visit("target", e.target);
  visit("units", e.units);
}

template <Is<StepRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("loss", e.loss);
  visit("lr", e.lr);
  visit("samples_per_s", e.samples_per_s);
  visit("step_ms", e.step_ms);
  visit("compute_ms", e.compute_ms);
  visit("comm_exposed_ms", e.comm_exposed_ms);
  visit("data_wait_ms", e.data_wait_ms);
  visit("other_ms", e.other_ms);
  visit("memory_bytes", e.memory_bytes);
  visit("grad_norm", e.grad_norm);
}

template <Is<ArrivalsRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("step", e.step);
  visit("steps", e.steps);
  visit("ranks", e.ranks);
  visit("last", e.last);
  visit("late_ms", e.late_ms);
  visit("clock_error_ms", e.clock_error_ms);
  visit("waited_ms", e.waited_ms);
  visit("waited_for_late_ms", e.waited_for_late_ms);
  visit("straggler", e.straggler);
}

template <Is<StagingRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("files", e.files);
  visit("bytes", e.bytes);
  visit("copied_files", e.copied_files);
  visit("copied_bytes", e.copied_bytes);
  visit("linked_files", e.linked_files);
  visit("seconds", e.seconds);
}

template <Is<DataRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("levels", e.levels);
  visit("samples", e.samples);
  visit("bytes", e.bytes);
  visit("seconds", e.seconds);
  visit("left_out", e.left_out);
  visit("reasons", e.reasons);
}

template <Is<SyncRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("meetings", e.meetings);
  visit("bytes", e.bytes);
  visit("seconds", e.seconds);
  visit("moved", e.moved);
}

template <Is<StagesRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("micro_batches", e.micro_batches);
  visit("bubble", e.bubble);
  visit("compute_ms", e.compute_ms);
  visit("waited_ms", e.waited_ms);
  visit("memory_bytes", e.memory_bytes);
}

template <Is<ServersRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("updates", e.updates);
  visit("version", e.version);
  visit("dropped", e.dropped);
  visit("bytes", e.bytes);
  visit("stale_mean", e.stale_mean);
  visit("stale_most", e.stale_most);
  visit("staleness", e.staleness);
  visit("spread", e.spread);
}
template <Is<NoiseRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("measured", e.measured);
  visit("small_squares", e.small_squares);
  visit("large_squares", e.large_squares);
  visit("signal", e.signal);
  visit("noise", e.noise);
  visit("critical_batch", e.critical_batch);
  visit("layers", e.layers);
}

template <Is<MachineRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("seconds", e.seconds);
  visit("other_work", e.other_work);
  visit("steal", e.steal);
  visit("throttled", e.throttled);
  visit("load", e.load);
}

template <Is<EpochRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("seconds", e.seconds);
  visit("train_loss", e.train_loss);
  visit("samples_per_s", e.samples_per_s);
  visit("compute_seconds", e.compute_seconds);
  visit("comm_exposed_seconds", e.comm_exposed_seconds);
  visit("data_wait_seconds", e.data_wait_seconds);
  visit("other_seconds", e.other_seconds);
  visit("grad_norm", e.grad_norm);
  visit("virtual_seconds", e.virtual_seconds);
  visit("virtual_waiting_seconds", e.virtual_waiting_seconds);
  visit("partial", e.partial);
}

template <Is<EvalRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("samples", e.samples);
  visit("accuracy", e.accuracy);
  visit("loss", e.loss);
  visit("metrics", e.metrics);
  visit("seconds", e.seconds);
  visit("wall_seconds", e.wall_seconds);
  visit("train_seconds", e.train_seconds);
  visit("virtual_seconds", e.virtual_seconds);
}

template <Is<TestRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  if constexpr (std::is_const_v<Event>)
    fields(static_cast<const EvalRecord&>(e), visit);
  else
    fields(static_cast<EvalRecord&>(e), visit);
  visit("weights_step", e.weights_step);
}

template <Is<CheckpointRecord> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("path", e.path);
  visit("bytes", e.bytes);
  visit("seconds", e.seconds);
  visit("until_complete", e.until_complete);
}

template <Is<TargetReached> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("epoch", e.epoch);
  visit("step", e.step);
  visit("wall_seconds", e.wall_seconds);
  visit("train_seconds", e.train_seconds);
  visit("value", e.value);
}

template <Is<RunStop> Event, class Visit>
void fields(Event& e, Visit&& visit) {
  visit("status", e.status);
  visit("reason", e.reason);
  visit("error", e.error);
  visit("epochs", e.epochs);
  visit("steps", e.steps);
  visit("samples", e.samples);
  visit("wall_seconds", e.wall_seconds);
  visit("train_seconds", e.train_seconds);
  visit("eval_seconds", e.eval_seconds);
  visit("checkpoint_seconds", e.checkpoint_seconds);
  visit("device_peak_bytes", e.device_peak_bytes);
  visit("device_joules", e.device_joules);
}

}  // namespace tutti::trace::record
