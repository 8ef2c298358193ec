#pragma once
// Two of the compiler's passes: what ranks exchange, and the update, cut into stages around that.

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti {

/// Fills plan.exchanges and plan.buckets, and says where bands and the run's end meet them. Every
/// value has its place.
void make_exchanges(Plan& plan, const Schedule& schedule);

/// Fills plan.stages from the updates and packs, whose operands have their places but for sums of
/// gradients: those are read where the bucket's sum will lie. After make_exchanges().
void make_stages(Plan& plan, const Schedule& schedule);

}  // namespace tutti
