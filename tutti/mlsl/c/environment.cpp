// The functions of mlsl.h: Environment.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

int mlsl_environment_get_env(mlsl_environment* env) {
  return attempt([&] { put(env, handle_of(process_environment())); });
}
int mlsl_environment_get_version(int* version) {
  return attempt([&] { put(version, MLSL_VERSION(MLSL_MAJOR_VERSION, MLSL_MINOR_VERSION)); });
}
int mlsl_environment_configure(mlsl_environment env, const char* config) {
  return with<Environment>(env, [&](auto& self) { self.configure(config); });
}
int mlsl_environment_init(mlsl_environment env, int*, char***) {
  return with<Environment>(env, [&](auto& self) { self.init(); });
}
int mlsl_environment_finalize(mlsl_environment env) {
  return with<Environment>(env, [&](auto& self) { self.finalize(); });
}
int mlsl_environment_is_initialized(mlsl_environment env, int* is_initialized) {
  return with<Environment>(env,
                           [&](auto& self) { put(is_initialized, self.initialized() ? 1 : 0); });
}
int mlsl_environment_get_process_idx(mlsl_environment env, size_t* process_idx) {
  return with<Environment>(env, [&](auto& self) { put(process_idx, self.process_index()); });
}
int mlsl_environment_get_process_count(mlsl_environment env, size_t* process_count) {
  return with<Environment>(env, [&](auto& self) { put(process_count, self.process_count()); });
}
int mlsl_environment_create_session(mlsl_environment env, mlsl_phase_type phase_type,
                                    mlsl_session* session) {
  return with<Environment>(env, [&](auto& self) {
    put(session, handle_of(self.create_session(static_cast<api::PhaseType>(phase_type))));
  });
}
int mlsl_environment_delete_session(mlsl_environment env, mlsl_session session) {
  return with<Environment>(env,
                           [&](auto& self) { self.remove_session(or_null<Session>(session)); });
}
int mlsl_environment_create_distribution(mlsl_environment env, size_t data_partitions,
                                         size_t model_partitions, mlsl_distribution* dist) {
  return with<Environment>(env, [&](auto& self) {
    put(dist, handle_of(self.create_distribution(data_partitions, model_partitions)));
  });
}
int mlsl_environment_delete_distribution(mlsl_environment env, mlsl_distribution dist) {
  return with<Environment>(
      env, [&](auto& self) { self.remove_distribution(or_null<Distribution>(dist)); });
}
int mlsl_environment_wait(mlsl_environment env, mlsl_comm_req req) {
  return with<Environment>(env, [&](auto& self) { self.requests().wait(request(req)); });
}
int mlsl_environment_test(mlsl_environment env, mlsl_comm_req req, int* is_completed) {
  return with<Environment>(
      env, [&](auto& self) { put(is_completed, self.requests().test(request(req)) ? 1 : 0); });
}
int mlsl_environment_alloc(mlsl_environment env, size_t size, size_t alignment, void** ptr) {
  return with<Environment>(env, [&](auto& self) { put(ptr, self.allocate(size, alignment)); });
}
int mlsl_environment_free(mlsl_environment env, void* ptr) {
  return with<Environment>(env, [&](auto& self) { self.free(ptr); });
}
int mlsl_environment_set_quantization_params(mlsl_environment env, mlsl_quant_params* params) {
  return with<Environment>(env, [&](auto& self) {
    demand(params != nullptr, "SetQuantizationParams without parameters");
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
  return with<Environment>(env, [&](auto& self) {
    const api::QuantParams* const set = self.quantization();
    demand(set != nullptr, "no quantisation parameters have been set");
    put(params,
        mlsl_quant_params{set->lib_path, set->quant_buffer_func_name, set->dequant_buffer_func_name,
                          set->reduce_sum_func_name, set->block_size, set->elem_in_block});
  });
}
