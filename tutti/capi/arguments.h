#pragma once
// Arguments of the C interface as the library's own values. Each throws ConfigError.

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/schedule/element.h"

namespace tutti::capi {

comm::Element element_of(int type);
comm::ReduceOp op_of(int op);
tutti_comm_plan_options plan_options(const tutti_comm_plan_options* given_options);

}  // namespace tutti::capi
