// The functions of mlsl.h: a handle is the address of an object of tutti::mlsl, and an exception becomes CMLSL_FAILURE.

#include "tutti/mlsl/mlsl.h"

#include <type_traits>

#include "tutti/mlsl/entry.h"

namespace {

namespace own = tutti::mlsl;
namespace api = ::MLSL;
using tutti::comm::Collective;
using Handle = unsigned long long;

// A handle that may be 0.
template <class T>
T* or_null(Handle handle) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

template <class T>
T& object(Handle handle) {
  own::demand(handle != 0, "an object is needed, and the handle is 0");
  return *or_null<T>(handle);
}

template <class T>
Handle handle_or_zero(T* object) {
  return static_cast<Handle>(reinterpret_cast<uintptr_t>(object));
}

template <class T>
Handle handle_of(T& object) {
  return handle_or_zero(&object);
}

api::CommReq* request(mlsl_comm_req handle) { return or_null<api::CommReq>(handle); }
api::DataType data(mlsl_data_type type) { return static_cast<api::DataType>(type); }
api::GroupType group(mlsl_group_type type) { return static_cast<api::GroupType>(type); }
api::ReductionType reduction(mlsl_reduction_type type) { return static_cast<api::ReductionType>(type); }

template <class T>
void put(T* place, std::type_identity_t<T> value) {
  own::demand(place != nullptr, "there is nowhere to put the answer: an argument is null");
  *place = value;
}

template <class Call>
int attempt(Call&& call) noexcept {
  try {
    call();
    return CMLSL_SUCCESS;
  } catch (const std::exception& error) {
    own::report(error);
    return CMLSL_FAILURE;
  }
}

// call(the object of the handle)
template <class T, class Call>
int with(Handle handle, Call&& call) noexcept {
  return attempt([&] { call(object<T>(handle)); });
}

// start(the distribution) gives a request, whose handle goes to `req`
template <class Start>
int start_in(mlsl_distribution dist, mlsl_comm_req* req, Start&& start) noexcept {
  return attempt([&] {
    own::demand(req != nullptr, "there is nowhere to put the request");
    *req = handle_of(*start(object<own::Distribution>(dist)));
  });
}

}  // namespace

// CommBlockInfo
int mlsl_comm_block_info_get_mb_offset(mlsl_comm_block_info block_info, size_t* mb_offset) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(mb_offset, self.block().samples.begin); });
}
int mlsl_comm_block_info_get_mb_count(mlsl_comm_block_info block_info, size_t* mb_count) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(mb_count, self.block().samples.count); });
}
int mlsl_comm_block_info_get_fm_offset(mlsl_comm_block_info block_info, size_t* fm_offset) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(fm_offset, self.block().maps.begin); });
}
int mlsl_comm_block_info_get_fm_count(mlsl_comm_block_info block_info, size_t* fm_count) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(fm_count, self.block().maps.count); });
}
int mlsl_comm_block_info_get_fm_size(mlsl_comm_block_info block_info, size_t* fm_size) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(fm_size, self.block().map_size); });
}
int mlsl_comm_block_info_get_data_type(mlsl_comm_block_info block_info, mlsl_data_type* dtype) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(dtype, static_cast<mlsl_data_type>(self.type())); });
}
int mlsl_comm_block_info_get_buf_offset(mlsl_comm_block_info block_info, size_t* buf_offset) {
  return with<own::CommBlockInfo>(block_info, [&](auto& self) { put(buf_offset, self.block().buffer_offset); });
}

// Activation
int mlsl_activation_get_global_fm_count(mlsl_activation act, size_t* global_fm_count) {
  return with<own::Activation>(act, [&](auto& self) { put(global_fm_count, self.info().maps); });
}
int mlsl_activation_get_global_fm_offset(mlsl_activation act, size_t* global_fm_offset) {
  return with<own::Activation>(act, [&](auto& self) { put(global_fm_offset, self.local_maps().begin); });
}
int mlsl_activation_get_local_fm_count(mlsl_activation act, size_t* local_fm_count) {
  return with<own::Activation>(act, [&](auto& self) { put(local_fm_count, self.local_maps().count); });
}
int mlsl_activation_get_pack_block_count(mlsl_activation act, size_t* pack_block_count) {
  return with<own::Activation>(act, [&](auto& self) { put(pack_block_count, self.pack_blocks().size()); });
}
int mlsl_activation_get_unpack_block_count(mlsl_activation act, size_t* unpack_block_count) {
  return with<own::Activation>(act, [&](auto& self) { put(unpack_block_count, self.unpack_blocks().size()); });
}
int mlsl_activation_get_pack_block(mlsl_activation act, size_t block_idx, mlsl_comm_block_info* block_info) {
  return with<own::Activation>(act, [&](auto& self) { put(block_info, handle_of(self.pack_block(block_idx))); });
}
int mlsl_activation_get_unpack_block(mlsl_activation act, size_t block_idx, mlsl_comm_block_info* block_info) {
  return with<own::Activation>(act, [&](auto& self) { put(block_info, handle_of(self.unpack_block(block_idx))); });
}
int mlsl_activation_get_data_type(mlsl_activation act, mlsl_data_type* dtype) {
  return with<own::Activation>(act, [&](auto& self) { put(dtype, static_cast<mlsl_data_type>(self.info().type)); });
}
int mlsl_activation_get_fm_size(mlsl_activation act, size_t* fm_size) {
  return with<own::Activation>(act, [&](auto& self) { put(fm_size, self.info().map_size); });
}
int mlsl_activation_get_comm_buf(mlsl_activation act, void** comm_buf) {
  return with<own::Activation>(act, [&](auto& self) { put(comm_buf, self.buffer()); });
}
int mlsl_activation_get_comm_buf_size(mlsl_activation act, size_t* size) {
  return with<own::Activation>(act, [&](auto& self) { put(size, self.buffer_bytes()); });
}
int mlsl_activation_start_comm(mlsl_activation act, void* buffer) {
  return with<own::Activation>(act, [&](auto& self) { self.start(buffer); });
}
int mlsl_activation_wait_comm(mlsl_activation act, void** ret_buffer) {
  return with<own::Activation>(act, [&](auto& self) { put(ret_buffer, self.wait()); });
}

// ParameterSet
int mlsl_parameter_set_get_global_kernel_count(mlsl_parameter_set param_set, size_t* global_kernel_count) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(global_kernel_count, self.info().all.kernels); });
}
int mlsl_parameter_set_get_global_kernel_offset(mlsl_parameter_set param_set, size_t* global_kernel_offset) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(global_kernel_offset, self.share().local.begin); });
}
int mlsl_parameter_set_get_local_kernel_count(mlsl_parameter_set param_set, size_t* local_kernel_count) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(local_kernel_count, self.local_kernels()); });
}
int mlsl_parameter_set_get_owned_kernel_count(mlsl_parameter_set param_set, size_t* owned_kernel_count) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(owned_kernel_count, self.share().owned.count); });
}
int mlsl_parameter_set_get_owned_kernel_offset(mlsl_parameter_set param_set, size_t* owned_kernel_offset) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(owned_kernel_offset, self.share().owned.begin); });
}
int mlsl_parameter_set_get_data_type(mlsl_parameter_set param_set, mlsl_data_type* dtype) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(dtype, static_cast<mlsl_data_type>(self.info().type)); });
}
int mlsl_parameter_set_get_kernel_size(mlsl_parameter_set param_set, size_t* kernel_size) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(kernel_size, self.info().all.kernel_size); });
}
int mlsl_parameter_set_is_distributed_update(mlsl_parameter_set param_set, int* is_dist_update) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(is_dist_update, self.info().all.distributed_update ? 1 : 0); });
}
int mlsl_parameter_set_start_gradient_comm(mlsl_parameter_set param_set, void* buffer) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { self.start_gradient(buffer); });
}
int mlsl_parameter_set_start_increment_comm(mlsl_parameter_set param_set, void* buffer) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { self.start_increment(buffer); });
}
int mlsl_parameter_set_wait_gradient_comm(mlsl_parameter_set param_set, void** ret_buffer) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(ret_buffer, self.wait_gradient()); });
}
int mlsl_parameter_set_test_gradient_comm(mlsl_parameter_set param_set, int* is_completed, void** ret_buffer) {
  return with<own::ParameterSet>(param_set, [&](auto& self) {
    bool complete = false;
    put(ret_buffer, self.test_gradient(complete));
    put(is_completed, complete ? 1 : 0);
  });
}
int mlsl_parameter_set_wait_increment_comm(mlsl_parameter_set param_set, void** ret_buffer) {
  return with<own::ParameterSet>(param_set, [&](auto& self) { put(ret_buffer, self.wait_increment()); });
}

// Distribution
int mlsl_distribution_get_process_count(mlsl_distribution dist, mlsl_group_type group_type, size_t* process_count) {
  return with<own::Distribution>(dist, [&](auto& self) { put(process_count, self.process_count(group(group_type))); });
}
int mlsl_distribution_get_process_idx(mlsl_distribution dist, mlsl_group_type group_type, size_t* process_idx) {
  return with<own::Distribution>(dist, [&](auto& self) { put(process_idx, self.process_index(group(group_type))); });
}
int mlsl_distribution_bcast(mlsl_distribution dist, void* buffer, size_t count, mlsl_data_type dtype, size_t root_idx, mlsl_group_type group_type,
                            mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.broadcast(buffer, count, data(dtype), root_idx, group(group_type));
  });
}
int mlsl_distribution_reduce(mlsl_distribution dist, void* send_buffer, void* recv_buffer, size_t count, mlsl_data_type dtype,
                             mlsl_reduction_type red_type, size_t root_idx, mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start({Collective::reduce, count, data(dtype), group(group_type), reduction(red_type), root_idx}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_reduce(mlsl_distribution dist, void* send_buffer, void* recv_buffer, size_t count, mlsl_data_type dtype,
                                 mlsl_reduction_type red_type, mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start({Collective::allreduce, count, data(dtype), group(group_type), reduction(red_type)}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_to_all(mlsl_distribution dist, void* send_buffer, size_t send_count, void* recv_buffer, mlsl_data_type dtype,
                                 mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::all_to_all, send_count, data(dtype), group(group_type)}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_to_allv(mlsl_distribution dist, void* send_buffer, size_t* send_counts, size_t* send_offsets, void* recv_buffer,
                                  size_t* recv_counts, size_t* recv_offsets, mlsl_data_type dtype, mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.all_to_all_blocks(send_buffer, {send_counts, send_offsets}, recv_buffer, {recv_counts, recv_offsets}, data(dtype), group(group_type));
  });
}
int mlsl_distribution_gather(mlsl_distribution dist, void* send_buffer, size_t send_count, void* recv_buffer, mlsl_data_type dtype, size_t root_idx,
                             mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::gather, send_count, data(dtype), group(group_type), api::RT_SUM, root_idx}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_gather(mlsl_distribution dist, void* send_buffer, size_t send_count, void* recv_buffer, mlsl_data_type dtype,
                                 mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::allgather, send_count, data(dtype), group(group_type)}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_scatter(mlsl_distribution dist, void* send_buffer, void* recv_buffer, size_t recv_count, mlsl_data_type dtype, size_t root_idx,
                              mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::scatter, recv_count, data(dtype), group(group_type), api::RT_SUM, root_idx}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_reduce_scatter(mlsl_distribution dist, void* send_buffer, void* recv_buffer, size_t recv_count, mlsl_data_type dtype,
                                     mlsl_reduction_type red_type, mlsl_group_type group_type, mlsl_comm_req* req) {
  return start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::reduce_scatter, recv_count, data(dtype), group(group_type), reduction(red_type)}, send_buffer, recv_buffer);
  });
}
int mlsl_distribution_barrier(mlsl_distribution dist, mlsl_group_type group_type) {
  return with<own::Distribution>(dist, [&](auto& self) { self.barrier(group(group_type)); });
}

// OperationRegInfo
int mlsl_operation_reg_info_set_name(mlsl_operation_reg_info reg_info, const char* name) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) { self.set_name(name); });
}
int mlsl_operation_reg_info_add_input(mlsl_operation_reg_info reg_info, size_t fm_count, size_t fm_size, mlsl_data_type dtype) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) { self.add_input({fm_count, fm_size, data(dtype)}); });
}
int mlsl_operation_reg_info_add_output(mlsl_operation_reg_info reg_info, size_t fm_count, size_t fm_size, mlsl_data_type dtype) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) { self.add_output({fm_count, fm_size, data(dtype)}); });
}
int mlsl_operation_reg_info_add_parameter_set(mlsl_operation_reg_info reg_info, size_t kernel_count, size_t kernel_size, mlsl_data_type dtype,
                                              int dist_update) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_parameters({{kernel_count, kernel_size, dist_update != 0}, data(dtype), api::CT_NONE});
  });
}
int mlsl_operation_reg_info_add_parameter_set_with_compress(mlsl_operation_reg_info reg_info, size_t kernel_count, size_t kernel_size,
                                                            mlsl_data_type dtype, int dist_update, mlsl_compression_type compress_type) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) {
    self.add_parameters({{kernel_count, kernel_size, dist_update != 0}, data(dtype), static_cast<api::CompressionType>(compress_type)});
  });
}
int mlsl_operation_reg_info_validate(mlsl_operation_reg_info reg_info, mlsl_distribution dist) {
  return with<own::OperationRegInfo>(reg_info, [&](auto& self) { self.validate(or_null<own::Distribution>(dist)); });
}

// Operation
int mlsl_operation_set_distribution(mlsl_operation op, mlsl_distribution dist) {
  return with<own::Operation>(op, [&](auto& self) { self.set_distribution(own::shared(or_null<own::Distribution>(dist))); });
}
int mlsl_operation_get_distribution(mlsl_operation op, mlsl_distribution* dist) {
  return with<own::Operation>(op, [&](auto& self) { put(dist, handle_or_zero(self.distribution())); });
}
int mlsl_operation_get_session(mlsl_operation op, mlsl_session* session) {
  return with<own::Operation>(op, [&](auto& self) { put(session, handle_of(self.session())); });
}
int mlsl_operation_get_op_type(mlsl_operation op, mlsl_op_type* op_type) {
  return with<own::Operation>(op, [&](auto& self) { put(op_type, static_cast<mlsl_op_type>(self.description().type)); });
}
int mlsl_operation_set_prev(mlsl_operation op, mlsl_operation prev, size_t act_idx, size_t prev_op_act_idx) {
  return with<own::Operation>(op, [&](auto& self) { self.set_previous(or_null<own::Operation>(prev), act_idx, prev_op_act_idx); });
}
int mlsl_operation_set_next(mlsl_operation op, mlsl_operation next, size_t act_idx, size_t next_op_act_idx) {
  return with<own::Operation>(op, [&](auto& self) { self.set_next(or_null<own::Operation>(next), act_idx, next_op_act_idx); });
}
int mlsl_operation_get_name(mlsl_operation op, const char** name) {
  return with<own::Operation>(op, [&](auto& self) { put(name, self.description().name.c_str()); });
}
int mlsl_operation_get_global_minibatch_size(mlsl_operation op, size_t* global_minibatch_size) {
  return with<own::Operation>(op, [&](auto& self) { put(global_minibatch_size, self.session().minibatch()); });
}
int mlsl_operation_get_local_minibatch_size(mlsl_operation op, size_t* local_minibatch_size) {
  return with<own::Operation>(op, [&](auto& self) { put(local_minibatch_size, self.samples().count); });
}
int mlsl_operation_get_global_minibatch_offset(mlsl_operation op, size_t* global_minibatch_offset) {
  return with<own::Operation>(op, [&](auto& self) { put(global_minibatch_offset, self.samples().begin); });
}
int mlsl_operation_get_input_count(mlsl_operation op, size_t* input_count) {
  return with<own::Operation>(op, [&](auto& self) { put(input_count, self.input_count()); });
}
int mlsl_operation_get_input(mlsl_operation op, size_t input_idx, mlsl_activation* input_act) {
  return with<own::Operation>(op, [&](auto& self) { put(input_act, handle_of(self.input(input_idx))); });
}
int mlsl_operation_get_output_count(mlsl_operation op, size_t* output_count) {
  return with<own::Operation>(op, [&](auto& self) { put(output_count, self.output_count()); });
}
int mlsl_operation_get_output(mlsl_operation op, size_t output_idx, mlsl_activation* output_act) {
  return with<own::Operation>(op, [&](auto& self) { put(output_act, handle_of(self.output(output_idx))); });
}
int mlsl_operation_has_parameter_sets(mlsl_operation op, int* has_params) {
  return with<own::Operation>(op, [&](auto& self) { put(has_params, self.parameter_count() > 0 ? 1 : 0); });
}
int mlsl_operation_get_parameter_set_count(mlsl_operation op, size_t* param_count) {
  return with<own::Operation>(op, [&](auto& self) { put(param_count, self.parameter_count()); });
}
int mlsl_operation_get_parameter_set(mlsl_operation op, size_t param_idx, mlsl_parameter_set* param_set) {
  return with<own::Operation>(op, [&](auto& self) { put(param_set, handle_of(self.parameters(param_idx))); });
}

// Statistics
int mlsl_statistics_start(mlsl_statistics stat) {
  return with<own::Statistics>(stat, [&](auto& self) { self.start(); });
}
int mlsl_statistics_stop(mlsl_statistics stat) {
  return with<own::Statistics>(stat, [&](auto& self) { self.stop(); });
}
int mlsl_statistics_reset(mlsl_statistics stat) {
  return with<own::Statistics>(stat, [&](auto& self) { self.reset(); });
}
int mlsl_statistics_print(mlsl_statistics stat) {
  return with<own::Statistics>(stat, [&](auto& self) { self.print(); });
}
int mlsl_statistics_is_started(mlsl_statistics stat, int* is_started) {
  return with<own::Statistics>(stat, [&](auto& self) { put(is_started, self.started() ? 1 : 0); });
}
int mlsl_statistics_is_enabled(mlsl_statistics stat, int* is_enabled) {
  return with<own::Statistics>(stat, [&](auto& self) { put(is_enabled, self.enabled() ? 1 : 0); });
}
int mlsl_statistics_get_isolation_comm_cycles(mlsl_statistics stat, size_t op_idx, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.of_operation(op_idx, &own::Statistics::Tally::isolated)); });
}
int mlsl_statistics_get_comm_size(mlsl_statistics stat, size_t op_idx, size_t* size) {
  return with<own::Statistics>(stat, [&](auto& self) { put(size, self.of_operation(op_idx, &own::Statistics::Tally::bytes)); });
}
int mlsl_statistics_get_comm_cycles(mlsl_statistics stat, size_t op_idx, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.of_operation(op_idx, &own::Statistics::Tally::cycles)); });
}
int mlsl_statistics_get_compute_cycles(mlsl_statistics stat, size_t op_idx, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.compute(op_idx)); });
}
int mlsl_statistics_get_total_isolation_comm_cycles(mlsl_statistics stat, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.total(&own::Statistics::Tally::isolated)); });
}
int mlsl_statistics_get_total_comm_size(mlsl_statistics stat, size_t* size) {
  return with<own::Statistics>(stat, [&](auto& self) { put(size, self.total(&own::Statistics::Tally::bytes)); });
}
int mlsl_statistics_get_total_comm_cycles(mlsl_statistics stat, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.total(&own::Statistics::Tally::cycles)); });
}
int mlsl_statistics_get_total_compute_cycles(mlsl_statistics stat, unsigned long long* cycles) {
  return with<own::Statistics>(stat, [&](auto& self) { put(cycles, self.total_compute()); });
}

// Session
int mlsl_session_set_global_minibatch_size(mlsl_session session, size_t global_minibatch_size) {
  return with<own::Session>(session, [&](auto& self) { self.set_minibatch(global_minibatch_size); });
}
int mlsl_session_get_global_minibatch_size(mlsl_session session, size_t* global_minibatch_size) {
  return with<own::Session>(session, [&](auto& self) { put(global_minibatch_size, self.minibatch()); });
}
int mlsl_session_get_phase_type(mlsl_session session, mlsl_phase_type* phase_type) {
  return with<own::Session>(session, [&](auto& self) { put(phase_type, static_cast<mlsl_phase_type>(self.phase())); });
}
int mlsl_session_create_operation_reg_info(mlsl_session session, mlsl_op_type op_type, mlsl_operation_reg_info* reg_info) {
  return with<own::Session>(session, [&](auto& self) { put(reg_info, handle_of(self.create_description(static_cast<api::OpType>(op_type)))); });
}
int mlsl_session_delete_operation_reg_info(mlsl_session session, mlsl_operation_reg_info reg_info) {
  return with<own::Session>(session, [&](auto& self) { self.remove_description(or_null<own::OperationRegInfo>(reg_info)); });
}
int mlsl_session_add_operation_with_distribution(mlsl_session session, mlsl_operation_reg_info reg_info, mlsl_distribution dist, size_t* op_idx) {
  return with<own::Session>(session, [&](auto& self) {
    put(op_idx, self.add(object<own::OperationRegInfo>(reg_info), own::shared(or_null<own::Distribution>(dist))));
  });
}
int mlsl_session_add_operation(mlsl_session session, mlsl_operation_reg_info reg_info, size_t* op_idx) {
  return with<own::Session>(session, [&](auto& self) { put(op_idx, self.add(object<own::OperationRegInfo>(reg_info), nullptr)); });
}
int mlsl_session_remove_operations(mlsl_session session) {
  return with<own::Session>(session, [&](auto& self) { self.remove_operations(); });
}
int mlsl_session_get_operation_count(mlsl_session session, size_t* op_count) {
  return with<own::Session>(session, [&](auto& self) { put(op_count, self.operation_count()); });
}
int mlsl_session_get_operation(mlsl_session session, size_t op_idx, mlsl_operation* op) {
  return with<own::Session>(session, [&](auto& self) { put(op, handle_of(self.operation(op_idx))); });
}
int mlsl_session_commit(mlsl_session session) {
  return with<own::Session>(session, [&](auto& self) { self.commit(); });
}
int mlsl_session_get_stats(mlsl_session session, mlsl_statistics* stat) {
  return with<own::Session>(session, [&](auto& self) { put(stat, handle_of(self.statistics())); });
}

// Environment
int mlsl_environment_get_env(mlsl_environment* env) {
  return attempt([&] { put(env, handle_of(own::process_environment())); });
}
int mlsl_environment_get_version(int* version) {
  return attempt([&] { put(version, MLSL_VERSION(MLSL_MAJOR_VERSION, MLSL_MINOR_VERSION)); });
}
int mlsl_environment_configure(mlsl_environment env, const char* config) {
  return with<own::Environment>(env, [&](auto& self) { self.configure(config); });
}
int mlsl_environment_init(mlsl_environment env, int*, char***) {
  return with<own::Environment>(env, [&](auto& self) { self.init(); });
}
int mlsl_environment_finalize(mlsl_environment env) {
  return with<own::Environment>(env, [&](auto& self) { self.finalize(); });
}
int mlsl_environment_is_initialized(mlsl_environment env, int* is_initialized) {
  return with<own::Environment>(env, [&](auto& self) { put(is_initialized, self.initialized() ? 1 : 0); });
}
int mlsl_environment_get_process_idx(mlsl_environment env, size_t* process_idx) {
  return with<own::Environment>(env, [&](auto& self) { put(process_idx, self.process_index()); });
}
int mlsl_environment_get_process_count(mlsl_environment env, size_t* process_count) {
  return with<own::Environment>(env, [&](auto& self) { put(process_count, self.process_count()); });
}
int mlsl_environment_create_session(mlsl_environment env, mlsl_phase_type phase_type, mlsl_session* session) {
  return with<own::Environment>(env, [&](auto& self) { put(session, handle_of(self.create_session(static_cast<api::PhaseType>(phase_type)))); });
}
int mlsl_environment_delete_session(mlsl_environment env, mlsl_session session) {
  return with<own::Environment>(env, [&](auto& self) { self.remove_session(or_null<own::Session>(session)); });
}
int mlsl_environment_create_distribution(mlsl_environment env, size_t data_partitions, size_t model_partitions, mlsl_distribution* dist) {
  return with<own::Environment>(env, [&](auto& self) { put(dist, handle_of(self.create_distribution(data_partitions, model_partitions))); });
}
int mlsl_environment_delete_distribution(mlsl_environment env, mlsl_distribution dist) {
  return with<own::Environment>(env, [&](auto& self) { self.remove_distribution(or_null<own::Distribution>(dist)); });
}
int mlsl_environment_wait(mlsl_environment env, mlsl_comm_req req) {
  return with<own::Environment>(env, [&](auto& self) { self.requests().wait(request(req)); });
}
int mlsl_environment_test(mlsl_environment env, mlsl_comm_req req, int* is_completed) {
  return with<own::Environment>(env, [&](auto& self) { put(is_completed, self.requests().test(request(req)) ? 1 : 0); });
}
int mlsl_environment_alloc(mlsl_environment env, size_t size, size_t alignment, void** ptr) {
  return with<own::Environment>(env, [&](auto& self) { put(ptr, self.allocate(size, alignment)); });
}
int mlsl_environment_free(mlsl_environment env, void* ptr) {
  return with<own::Environment>(env, [&](auto& self) { self.free(ptr); });
}
int mlsl_environment_set_quantization_params(mlsl_environment env, mlsl_quant_params* params) {
  return with<own::Environment>(env, [&](auto& self) {
    own::demand(params != nullptr, "SetQuantizationParams without parameters");
    const api::QuantParams given{params->lib_path, params->quant_buffer_func_name, params->dequant_buffer_func_name, params->reduce_sum_func_name,
                                 params->block_size, params->elem_in_block};
    self.set_quantization(&given);
  });
}
int mlsl_environment_get_quantization_params(mlsl_environment env, mlsl_quant_params* params) {
  return with<own::Environment>(env, [&](auto& self) {
    const api::QuantParams* const set = self.quantization();
    own::demand(set != nullptr, "no quantisation parameters have been set");
    put(params, mlsl_quant_params{set->lib_path, set->quant_buffer_func_name, set->dequant_buffer_func_name, set->reduce_sum_func_name,
                                  set->block_size, set->elem_in_block});
  });
}
