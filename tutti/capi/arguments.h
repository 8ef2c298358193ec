#pragma once
// Converts arguments of the C interface into the library's own values. Each function throws
// ConfigError.

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
/// Reads options of a plan that only this rank makes; `what` names the plan. Refuses algorithm,
/// chunk and reproducible, because there is no schedule that they could change.
tutti_comm_plan_options options_of_one_rank(const tutti_comm_plan_options* given_options,
                                            std::string_view what);
/// Returns the buffer in the library's type. The library does not write it where the interface says
/// const.
std::span<std::byte> bytes_at(const void* data, size_t bytes);
/// Returns the text; empty for a null pointer.
std::string text_of(const char* text);

}  // namespace tutti::capi
