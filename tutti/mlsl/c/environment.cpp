// The functions of mlsl.h: Environment.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

int mlsl_environment_get_env(mlsl_environment* env) {
  return tutti::mlsl::c::attempt([&] {
    tutti::mlsl::c::put(env, tutti::mlsl::c::handle_of(tutti::mlsl::process_environment()));
  });
}
int mlsl_environment_get_version(int* version) {
  return tutti::mlsl::c::attempt(
      [&] { tutti::mlsl::c::put(version, MLSL_VERSION(MLSL_MAJOR_VERSION, MLSL_MINOR_VERSION)); });
}
int mlsl_environment_configure(mlsl_environment env, const char* config) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { self.configure(config); });
}
int mlsl_environment_init(mlsl_environment env, int*, char***) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) { self.init(); });
}
int mlsl_environment_finalize(mlsl_environment env) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) { self.finalize(); });
}
int mlsl_environment_is_initialized(mlsl_environment env, int* is_initialized) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { tutti::mlsl::c::put(is_initialized, self.initialized() ? 1 : 0); });
}
int mlsl_environment_get_process_idx(mlsl_environment env, size_t* process_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { tutti::mlsl::c::put(process_idx, self.process_index()); });
}
int mlsl_environment_get_process_count(mlsl_environment env, size_t* process_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { tutti::mlsl::c::put(process_count, self.process_count()); });
}
int mlsl_environment_create_session(mlsl_environment env, mlsl_phase_type phase_type,
                                    mlsl_session* session) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    tutti::mlsl::c::put(session, tutti::mlsl::c::handle_of(
                                     self.create_session(static_cast<api::PhaseType>(phase_type))));
  });
}
int mlsl_environment_delete_session(mlsl_environment env, mlsl_session session) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    self.remove_session(tutti::mlsl::c::or_null<tutti::mlsl::Session>(session));
  });
}
int mlsl_environment_create_distribution(mlsl_environment env, size_t data_partitions,
                                         size_t model_partitions, mlsl_distribution* dist) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    tutti::mlsl::c::put(dist, tutti::mlsl::c::handle_of(
                                  self.create_distribution(data_partitions, model_partitions)));
  });
}
int mlsl_environment_delete_distribution(mlsl_environment env, mlsl_distribution dist) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    self.remove_distribution(tutti::mlsl::c::or_null<tutti::mlsl::Distribution>(dist));
  });
}
int mlsl_environment_wait(mlsl_environment env, mlsl_comm_req req) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { self.requests().wait(tutti::mlsl::c::request(req)); });
}
int mlsl_environment_test(mlsl_environment env, mlsl_comm_req req, int* is_completed) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    tutti::mlsl::c::put(is_completed, self.requests().test(tutti::mlsl::c::request(req)) ? 1 : 0);
  });
}
int mlsl_environment_alloc(mlsl_environment env, size_t size, size_t alignment, void** ptr) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(
      env, [&](auto& self) { tutti::mlsl::c::put(ptr, self.allocate(size, alignment)); });
}
int mlsl_environment_free(mlsl_environment env, void* ptr) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) { self.free(ptr); });
}
int mlsl_environment_set_quantization_params(mlsl_environment env, mlsl_quant_params* params) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    tutti::mlsl::demand(params != nullptr, "SetQuantizationParams without parameters");
    const api::QuantParams given{params->lib_path,
                                 params->quant_buffer_func_name,
                                 params->dequant_buffer_func_name,
                                 params->reduce_sum_func_name,
                                 params->block_size,
                                 params->elem_in_block};
    self.set_quantization(&given);
  });
}
int mlsl_environment_get_quantization_params(mlsl_environment env, mlsl_quant_params* params) {
  return tutti::mlsl::c::with<tutti::mlsl::Environment>(env, [&](auto& self) {
    const api::QuantParams* const set = self.quantization();
    tutti::mlsl::demand(set != nullptr, "no quantisation parameters have been set");
    tutti::mlsl::c::put(
        params,
        mlsl_quant_params{set->lib_path, set->quant_buffer_func_name, set->dequant_buffer_func_name,
                          set->reduce_sum_func_name, set->block_size, set->elem_in_block});
  });
}
