// The functions of mlsl.h: Distribution.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;
using tutti::comm::Collective;

int mlsl_distribution_get_process_count(mlsl_distribution dist, mlsl_group_type group_type,
                                        size_t* process_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Distribution>(dist, [&](auto& self) {
    tutti::mlsl::c::put(process_count, self.process_count(tutti::mlsl::c::group(group_type)));
  });
}
int mlsl_distribution_get_process_idx(mlsl_distribution dist, mlsl_group_type group_type,
                                      size_t* process_idx) {
  return tutti::mlsl::c::with<tutti::mlsl::Distribution>(dist, [&](auto& self) {
    tutti::mlsl::c::put(process_idx, self.process_index(tutti::mlsl::c::group(group_type)));
  });
}
int mlsl_distribution_bcast(mlsl_distribution dist, void* buffer, size_t count,
                            mlsl_data_type dtype, size_t root_idx, mlsl_group_type group_type,
                            mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.broadcast(buffer, count, tutti::mlsl::c::data(dtype), root_idx,
                          tutti::mlsl::c::group(group_type));
  });
}
int mlsl_distribution_reduce(mlsl_distribution dist, void* send_buffer, void* recv_buffer,
                             size_t count, mlsl_data_type dtype, mlsl_reduction_type red_type,
                             size_t root_idx, mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start(
        {Collective::reduce, count, tutti::mlsl::c::data(dtype), tutti::mlsl::c::group(group_type),
         tutti::mlsl::c::reduction(red_type), root_idx},
        send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_reduce(mlsl_distribution dist, void* send_buffer, void* recv_buffer,
                                 size_t count, mlsl_data_type dtype, mlsl_reduction_type red_type,
                                 mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start({Collective::allreduce, count, tutti::mlsl::c::data(dtype),
                       tutti::mlsl::c::group(group_type), tutti::mlsl::c::reduction(red_type)},
                      send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_to_all(mlsl_distribution dist, void* send_buffer, size_t send_count,
                                 void* recv_buffer, mlsl_data_type dtype,
                                 mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::all_to_all, send_count, tutti::mlsl::c::data(dtype),
                             tutti::mlsl::c::group(group_type)},
                            send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_to_allv(mlsl_distribution dist, void* send_buffer, size_t* send_counts,
                                  size_t* send_offsets, void* recv_buffer, size_t* recv_counts,
                                  size_t* recv_offsets, mlsl_data_type dtype,
                                  mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.all_to_all_blocks(send_buffer, {send_counts, send_offsets}, recv_buffer,
                                  {recv_counts, recv_offsets}, tutti::mlsl::c::data(dtype),
                                  tutti::mlsl::c::group(group_type));
  });
}
int mlsl_distribution_gather(mlsl_distribution dist, void* send_buffer, size_t send_count,
                             void* recv_buffer, mlsl_data_type dtype, size_t root_idx,
                             mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::gather, send_count, tutti::mlsl::c::data(dtype),
                             tutti::mlsl::c::group(group_type), api::RT_SUM, root_idx},
                            send_buffer, recv_buffer);
  });
}
int mlsl_distribution_all_gather(mlsl_distribution dist, void* send_buffer, size_t send_count,
                                 void* recv_buffer, mlsl_data_type dtype,
                                 mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::allgather, send_count, tutti::mlsl::c::data(dtype),
                             tutti::mlsl::c::group(group_type)},
                            send_buffer, recv_buffer);
  });
}
int mlsl_distribution_scatter(mlsl_distribution dist, void* send_buffer, void* recv_buffer,
                              size_t recv_count, mlsl_data_type dtype, size_t root_idx,
                              mlsl_group_type group_type, mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start_equal({Collective::scatter, recv_count, tutti::mlsl::c::data(dtype),
                             tutti::mlsl::c::group(group_type), api::RT_SUM, root_idx},
                            send_buffer, recv_buffer);
  });
}
int mlsl_distribution_reduce_scatter(mlsl_distribution dist, void* send_buffer, void* recv_buffer,
                                     size_t recv_count, mlsl_data_type dtype,
                                     mlsl_reduction_type red_type, mlsl_group_type group_type,
                                     mlsl_comm_req* req) {
  return tutti::mlsl::c::start_in(dist, req, [&](auto& self) {
    return self.start_equal(
        {Collective::reduce_scatter, recv_count, tutti::mlsl::c::data(dtype),
         tutti::mlsl::c::group(group_type), tutti::mlsl::c::reduction(red_type)},
        send_buffer, recv_buffer);
  });
}
int mlsl_distribution_barrier(mlsl_distribution dist, mlsl_group_type group_type) {
  return tutti::mlsl::c::with<tutti::mlsl::Distribution>(
      dist, [&](auto& self) { self.barrier(tutti::mlsl::c::group(group_type)); });
}
