// The functions of mlsl.h: CommBlockInfo and Activation.

#include "tutti/mlsl/c/handle.h"

using namespace tutti::mlsl;
using namespace tutti::mlsl::c;

// CommBlockInfo
int mlsl_comm_block_info_get_mb_offset(mlsl_comm_block_info block_info, size_t* mb_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(mb_offset, self.block().samples.begin); });
}
int mlsl_comm_block_info_get_mb_count(mlsl_comm_block_info block_info, size_t* mb_count) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(mb_count, self.block().samples.count); });
}
int mlsl_comm_block_info_get_fm_offset(mlsl_comm_block_info block_info, size_t* fm_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(fm_offset, self.block().maps.begin); });
}
int mlsl_comm_block_info_get_fm_count(mlsl_comm_block_info block_info, size_t* fm_count) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(fm_count, self.block().maps.count); });
}
int mlsl_comm_block_info_get_fm_size(mlsl_comm_block_info block_info, size_t* fm_size) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(fm_size, self.block().map_size); });
}
int mlsl_comm_block_info_get_data_type(mlsl_comm_block_info block_info, mlsl_data_type* dtype) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(block_info, [&](auto& self) {
    tutti::mlsl::c::put(dtype, static_cast<mlsl_data_type>(self.type()));
  });
}
int mlsl_comm_block_info_get_buf_offset(mlsl_comm_block_info block_info, size_t* buf_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::CommBlockInfo>(
      block_info, [&](auto& self) { tutti::mlsl::c::put(buf_offset, self.block().buffer_offset); });
}

// Activation
int mlsl_activation_get_global_fm_count(mlsl_activation act, size_t* global_fm_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(global_fm_count, self.info().maps); });
}
int mlsl_activation_get_global_fm_offset(mlsl_activation act, size_t* global_fm_offset) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(global_fm_offset, self.local_maps().begin); });
}
int mlsl_activation_get_local_fm_count(mlsl_activation act, size_t* local_fm_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(local_fm_count, self.local_maps().count); });
}
int mlsl_activation_get_pack_block_count(mlsl_activation act, size_t* pack_block_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(pack_block_count, self.pack_blocks().size()); });
}
int mlsl_activation_get_unpack_block_count(mlsl_activation act, size_t* unpack_block_count) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(act, [&](auto& self) {
    tutti::mlsl::c::put(unpack_block_count, self.unpack_blocks().size());
  });
}
int mlsl_activation_get_pack_block(mlsl_activation act, size_t block_idx,
                                   mlsl_comm_block_info* block_info) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(act, [&](auto& self) {
    tutti::mlsl::c::put(block_info, tutti::mlsl::c::handle_of(self.pack_block(block_idx)));
  });
}
int mlsl_activation_get_unpack_block(mlsl_activation act, size_t block_idx,
                                     mlsl_comm_block_info* block_info) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(act, [&](auto& self) {
    tutti::mlsl::c::put(block_info, tutti::mlsl::c::handle_of(self.unpack_block(block_idx)));
  });
}
int mlsl_activation_get_data_type(mlsl_activation act, mlsl_data_type* dtype) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(act, [&](auto& self) {
    tutti::mlsl::c::put(dtype, static_cast<mlsl_data_type>(self.info().type));
  });
}
int mlsl_activation_get_fm_size(mlsl_activation act, size_t* fm_size) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(fm_size, self.info().map_size); });
}
int mlsl_activation_get_comm_buf(mlsl_activation act, void** comm_buf) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(comm_buf, self.buffer()); });
}
int mlsl_activation_get_comm_buf_size(mlsl_activation act, size_t* size) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(size, self.buffer_bytes()); });
}
int mlsl_activation_start_comm(mlsl_activation act, void* buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(act,
                                                       [&](auto& self) { self.start(buffer); });
}
int mlsl_activation_wait_comm(mlsl_activation act, void** ret_buffer) {
  return tutti::mlsl::c::with<tutti::mlsl::Activation>(
      act, [&](auto& self) { tutti::mlsl::c::put(ret_buffer, self.wait()); });
}
