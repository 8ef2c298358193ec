#pragma once
// Denormals: numbers nearer to zero than 2^-126, in f64 than 2^-1022. Processors take a hundred
// cycles for each operation on them. A network makes many: saturated activations, moments of
// parameters without gradients, probabilities of impossible events.

namespace tutti {

/// Makes arithmetic of this thread, and of threads that it starts from now on, treat denormals as
/// zero and make none. A computation whose bits are compared must run with it as a whole, or not at
/// all. Returns false and does nothing on processors other than x86-64 and AArch64.
bool flush_denormals();

}  // namespace tutti
