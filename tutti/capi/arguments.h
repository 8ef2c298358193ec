#pragma once
// Arguments of the C interface as the library's own values. Each throws ConfigError.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/schedule/element.h"

namespace tutti::capi {

comm::Element element_of(int type);
comm::ReduceOp op_of(int op);
tutti_comm_plan_options plan_options(const tutti_comm_plan_options* given_options);
/// Those of a plan of this rank alone, which `what` names: algorithm, chunk and reproducible are
/// refused, because there is no schedule that they could change.
tutti_comm_plan_options options_of_one_rank(const tutti_comm_plan_options* given_options,
                                            std::string_view what);
/// As the library takes buffers, which it does not write where the interface says const.
std::span<std::byte> bytes_at(const void* data, size_t bytes);
/// The empty text for a null pointer.
std::string text_of(const char* text);

}  // namespace tutti::capi
