// The functions of mlsl.h: ParameterSet.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

int mlsl_parameter_set_get_global_kernel_count(mlsl_parameter_set param_set,
                                               size_t* global_kernel_count) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(global_kernel_count, self.info().all.kernels);
  });
}
int mlsl_parameter_set_get_global_kernel_offset(mlsl_parameter_set param_set,
                                                size_t* global_kernel_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(global_kernel_offset, self.share().local.begin);
  });
}
int mlsl_parameter_set_get_local_kernel_count(mlsl_parameter_set param_set,
                                              size_t* local_kernel_count) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(local_kernel_count, self.local_kernels());
  });
}
int mlsl_parameter_set_get_owned_kernel_count(mlsl_parameter_set param_set,
                                              size_t* owned_kernel_count) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(owned_kernel_count, self.share().owned.count);
  });
}
int mlsl_parameter_set_get_owned_kernel_offset(mlsl_parameter_set param_set,
                                               size_t* owned_kernel_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(owned_kernel_offset, self.share().owned.begin);
  });
}
int mlsl_parameter_set_get_data_type(mlsl_parameter_set param_set, mlsl_data_type* dtype) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(dtype, static_cast<mlsl_data_type>(self.info().type));
  });
}
int mlsl_parameter_set_get_kernel_size(mlsl_parameter_set param_set, size_t* kernel_size) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(kernel_size, self.info().all.kernel_size);
  });
}
int mlsl_parameter_set_is_distributed_update(mlsl_parameter_set param_set, int* is_dist_update) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    tutti::mlsl::c::put(is_dist_update, self.info().all.distributed_update ? 1 : 0);
  });
}
int mlsl_parameter_set_start_gradient_comm(mlsl_parameter_set param_set, void* buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(
      param_set, [&](auto& self) { self.start_gradient(buffer); });
}
int mlsl_parameter_set_start_increment_comm(mlsl_parameter_set param_set, void* buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(
      param_set, [&](auto& self) { self.start_increment(buffer); });
}
int mlsl_parameter_set_wait_gradient_comm(mlsl_parameter_set param_set, void** ret_buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(
      param_set, [&](auto& self) { tutti::mlsl::c::put(ret_buffer, self.wait_gradient()); });
}
int mlsl_parameter_set_test_gradient_comm(mlsl_parameter_set param_set, int* is_completed,
                                          void** ret_buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(param_set, [&](auto& self) {
    bool complete = false;
    tutti::mlsl::c::put(ret_buffer, self.test_gradient(complete));
    tutti::mlsl::c::put(is_completed, complete ? 1 : 0);
  });
}
int mlsl_parameter_set_wait_increment_comm(mlsl_parameter_set param_set, void** ret_buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::ParameterSet>(
      param_set, [&](auto& self) { tutti::mlsl::c::put(ret_buffer, self.wait_increment()); });
}
