#pragma once
// Denormals: numbers nearer to zero than 2^-126, in f64 than 2^-1022. Processors compute with them
// a hundred cycles at a time. A network makes many: saturated activations, moments of parameters
// without gradients, probabilities of what is impossible.

namespace tutti {

/// From here on arithmetic of this thread, and of threads that it starts, takes denormals for zero
/// and makes none. What computes bits that are compared must be under it as a whole, or not at all.
/// False, and nothing is done, where there is no way to ask for that: on processors other than
/// x86-64 and AArch64.
bool flush_denormals();

}  // namespace tutti
