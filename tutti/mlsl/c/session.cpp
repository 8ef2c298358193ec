// The functions of mlsl.h: Statistics and Session.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

// Statistics
int mlsl_statistics_start(mlsl_statistics stat) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) { self.start(); });
}
int mlsl_statistics_stop(mlsl_statistics stat) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) { self.stop(); });
}
int mlsl_statistics_reset(mlsl_statistics stat) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) { self.reset(); });
}
int mlsl_statistics_print(mlsl_statistics stat) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) { self.print(); });
}
int mlsl_statistics_is_started(mlsl_statistics stat, int* is_started) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(
      stat, [&](auto& self) { tutti::mlsl::c::put(is_started, self.started() ? 1 : 0); });
}
int mlsl_statistics_is_enabled(mlsl_statistics stat, int* is_enabled) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(
      stat, [&](auto& self) { tutti::mlsl::c::put(is_enabled, self.enabled() ? 1 : 0); });
}
int mlsl_statistics_get_isolation_comm_cycles(mlsl_statistics stat, size_t op_idx,
                                              unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(cycles,
                        self.of_operation(op_idx, &tutti::mlsl::Statistics::Tally::isolated));
  });
}
int mlsl_statistics_get_comm_size(mlsl_statistics stat, size_t op_idx, size_t* size) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(size, self.of_operation(op_idx, &tutti::mlsl::Statistics::Tally::bytes));
  });
}
int mlsl_statistics_get_comm_cycles(mlsl_statistics stat, size_t op_idx,
                                    unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(cycles, self.of_operation(op_idx, &tutti::mlsl::Statistics::Tally::cycles));
  });
}
int mlsl_statistics_get_compute_cycles(mlsl_statistics stat, size_t op_idx,
                                       unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(
      stat, [&](auto& self) { tutti::mlsl::c::put(cycles, self.compute(op_idx)); });
}
int mlsl_statistics_get_total_isolation_comm_cycles(mlsl_statistics stat,
                                                    unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(cycles, self.total(&tutti::mlsl::Statistics::Tally::isolated));
  });
}
int mlsl_statistics_get_total_comm_size(mlsl_statistics stat, size_t* size) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(size, self.total(&tutti::mlsl::Statistics::Tally::bytes));
  });
}
int mlsl_statistics_get_total_comm_cycles(mlsl_statistics stat, unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(stat, [&](auto& self) {
    tutti::mlsl::c::put(cycles, self.total(&tutti::mlsl::Statistics::Tally::cycles));
  });
}
int mlsl_statistics_get_total_compute_cycles(mlsl_statistics stat, unsigned long long* cycles) {
  return tutti::mlsl::c::with<tutti::mlsl::Statistics>(
      stat, [&](auto& self) { tutti::mlsl::c::put(cycles, self.total_compute()); });
}

// Session
int mlsl_session_set_global_minibatch_size(mlsl_session session, size_t global_minibatch_size) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(
      session, [&](auto& self) { self.set_minibatch(global_minibatch_size); });
}
int mlsl_session_get_global_minibatch_size(mlsl_session session, size_t* global_minibatch_size) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(
      session, [&](auto& self) { tutti::mlsl::c::put(global_minibatch_size, self.minibatch()); });
}
int mlsl_session_get_phase_type(mlsl_session session, mlsl_phase_type* phase_type) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(phase_type, static_cast<mlsl_phase_type>(self.phase()));
  });
}
int mlsl_session_create_operation_reg_info(mlsl_session session, mlsl_op_type op_type,
                                           mlsl_operation_reg_info* reg_info) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(reg_info, tutti::mlsl::c::handle_of(
                                      self.create_description(static_cast<api::OpType>(op_type))));
  });
}
int mlsl_session_delete_operation_reg_info(mlsl_session session, mlsl_operation_reg_info reg_info) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    self.remove_description(tutti::mlsl::c::or_null<tutti::mlsl::OperationRegInfo>(reg_info));
  });
}
int mlsl_session_add_operation_with_distribution(mlsl_session session,
                                                 mlsl_operation_reg_info reg_info,
                                                 mlsl_distribution dist, size_t* op_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(
        op_idx,
        self.add(tutti::mlsl::c::object<tutti::mlsl::OperationRegInfo>(reg_info),
                 tutti::mlsl::shared(tutti::mlsl::c::or_null<tutti::mlsl::Distribution>(dist))));
  });
}
int mlsl_session_add_operation(mlsl_session session, mlsl_operation_reg_info reg_info,
                               size_t* op_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(
        op_idx, self.add(tutti::mlsl::c::object<tutti::mlsl::OperationRegInfo>(reg_info), nullptr));
  });
}
int mlsl_session_remove_operations(mlsl_session session) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session,
                                                    [&](auto& self) { self.remove_operations(); });
}
int mlsl_session_get_operation_count(mlsl_session session, size_t* op_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(
      session, [&](auto& self) { tutti::mlsl::c::put(op_count, self.operation_count()); });
}
int mlsl_session_get_operation(mlsl_session session, size_t op_idx, mlsl_operation* op) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(op, tutti::mlsl::c::handle_of(self.operation(op_idx)));
  });
}
int mlsl_session_commit(mlsl_session session) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) { self.commit(); });
}
int mlsl_session_get_stats(mlsl_session session, mlsl_statistics* stat) {
  return tutti::mlsl::c::with<tutti::mlsl::Session>(session, [&](auto& self) {
    tutti::mlsl::c::put(stat, tutti::mlsl::c::handle_of(self.statistics()));
  });
}
