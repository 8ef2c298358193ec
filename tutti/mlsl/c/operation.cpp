// The functions of mlsl.h: OperationRegInfo and Operation.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

// OperationRegInfo
int mlsl_operation_reg_info_set_name(mlsl_operation_reg_info reg_info, const char* name) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(
      reg_info, [&](auto& self) { self.set_name(name); });
}
int mlsl_operation_reg_info_add_input(mlsl_operation_reg_info reg_info, size_t fm_count,
                                      size_t fm_size, mlsl_data_type dtype) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_input({fm_count, fm_size, tutti::mlsl::c::data(dtype)});
  });
}
int mlsl_operation_reg_info_add_output(mlsl_operation_reg_info reg_info, size_t fm_count,
                                       size_t fm_size, mlsl_data_type dtype) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_output({fm_count, fm_size, tutti::mlsl::c::data(dtype)});
  });
}
int mlsl_operation_reg_info_add_parameter_set(mlsl_operation_reg_info reg_info, size_t kernel_count,
                                              size_t kernel_size, mlsl_data_type dtype,
                                              int dist_update) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_parameters(
        {{kernel_count, kernel_size, dist_update != 0}, tutti::mlsl::c::data(dtype), api::CT_NONE});
  });
}
int mlsl_operation_reg_info_add_parameter_set_with_compress(mlsl_operation_reg_info reg_info,
                                                            size_t kernel_count, size_t kernel_size,
                                                            mlsl_data_type dtype, int dist_update,
                                                            mlsl_compression_type compress_type) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_parameters({{kernel_count, kernel_size, dist_update != 0},
                         tutti::mlsl::c::data(dtype),
                         static_cast<api::CompressionType>(compress_type)});
  });
}
int mlsl_operation_reg_info_validate(mlsl_operation_reg_info reg_info, mlsl_distribution dist) {
  return tutti::mlsl::c::with<tutti::mlsl::OperationRegInfo>(reg_info, [&](auto& self) {
    self.validate(tutti::mlsl::c::or_null<tutti::mlsl::Distribution>(dist));
  });
}

// Operation
int mlsl_operation_set_distribution(mlsl_operation op, mlsl_distribution dist) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    self.set_distribution(
        tutti::mlsl::shared(tutti::mlsl::c::or_null<tutti::mlsl::Distribution>(dist)));
  });
}
int mlsl_operation_get_distribution(mlsl_operation op, mlsl_distribution* dist) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(dist, tutti::mlsl::c::handle_or_zero(self.distribution()));
  });
}
int mlsl_operation_get_session(mlsl_operation op, mlsl_session* session) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(session, tutti::mlsl::c::handle_of(self.session()));
  });
}
int mlsl_operation_get_op_type(mlsl_operation op, mlsl_op_type* op_type) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(op_type, static_cast<mlsl_op_type>(self.description().type));
  });
}
int mlsl_operation_set_prev(mlsl_operation op, mlsl_operation prev, size_t act_idx,
                            size_t prev_op_act_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    self.set_previous(tutti::mlsl::c::or_null<tutti::mlsl::Operation>(prev), act_idx,
                      prev_op_act_idx);
  });
}
int mlsl_operation_set_next(mlsl_operation op, mlsl_operation next, size_t act_idx,
                            size_t next_op_act_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    self.set_next(tutti::mlsl::c::or_null<tutti::mlsl::Operation>(next), act_idx, next_op_act_idx);
  });
}
int mlsl_operation_get_name(mlsl_operation op, const char** name) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(name, self.description().name.c_str()); });
}
int mlsl_operation_get_global_minibatch_size(mlsl_operation op, size_t* global_minibatch_size) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(global_minibatch_size, self.session().minibatch());
  });
}
int mlsl_operation_get_local_minibatch_size(mlsl_operation op, size_t* local_minibatch_size) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(local_minibatch_size, self.samples().count); });
}
int mlsl_operation_get_global_minibatch_offset(mlsl_operation op, size_t* global_minibatch_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(global_minibatch_offset, self.samples().begin); });
}
int mlsl_operation_get_input_count(mlsl_operation op, size_t* input_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(input_count, self.input_count()); });
}
int mlsl_operation_get_input(mlsl_operation op, size_t input_idx, mlsl_activation* input_act) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(input_act, tutti::mlsl::c::handle_of(self.input(input_idx)));
  });
}
int mlsl_operation_get_output_count(mlsl_operation op, size_t* output_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(output_count, self.output_count()); });
}
int mlsl_operation_get_output(mlsl_operation op, size_t output_idx, mlsl_activation* output_act) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(output_act, tutti::mlsl::c::handle_of(self.output(output_idx)));
  });
}
int mlsl_operation_has_parameter_sets(mlsl_operation op, int* has_params) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(has_params, self.parameter_count() > 0 ? 1 : 0); });
}
int mlsl_operation_get_parameter_set_count(mlsl_operation op, size_t* param_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(
      op, [&](auto& self) { tutti::mlsl::c::put(param_count, self.parameter_count()); });
}
int mlsl_operation_get_parameter_set(mlsl_operation op, size_t param_idx,
                                     mlsl_parameter_set* param_set) {
  return tutti::mlsl::c::with<tutti::mlsl::Operation>(op, [&](auto& self) {
    tutti::mlsl::c::put(param_set, tutti::mlsl::c::handle_of(self.parameters(param_idx)));
  });
}
