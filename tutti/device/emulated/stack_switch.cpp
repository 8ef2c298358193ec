#include "tutti/device/emulated/stack_switch.h"

#include <cstdint>

#if defined(__x86_64__)

// It stands here as assembly, so that a compiler knows nothing of the registers that it leaves as
// they are, and a sanitizer adds nothing.
extern "C" void tutti_switch_stack(void** from, void* to);
asm(R"(
    .text
    .globl tutti_switch_stack
    .hidden tutti_switch_stack
    .type tutti_switch_stack, @function
tutti_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size tutti_switch_stack, .-tutti_switch_stack
)");

namespace tutti::device {

void switch_stack(StackPlace& from, StackPlace& to) { tutti_switch_stack(&from.top, to.top); }

void begin_stack(StackPlace& place, std::byte* memory, size_t bytes, void (*function)()) {
  auto* top =
      reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(memory + bytes) & ~uintptr_t{15});
  *--top = nullptr;  // the address that the function would return to
  *--top = reinterpret_cast<void*>(function);
  for (int kept = 0; kept < 6; ++kept) *--top = nullptr;
  place.top = top;
}

}  // namespace tutti::device

#else

namespace tutti::device {

void switch_stack(StackPlace& from, StackPlace& to) { swapcontext(&from.registers, &to.registers); }

void begin_stack(StackPlace& place, std::byte* memory, size_t bytes, void (*function)()) {
  getcontext(&place.registers);
  place.registers.uc_stack.ss_sp = memory;
  place.registers.uc_stack.ss_size = bytes;
  place.registers.uc_link = nullptr;
  makecontext(&place.registers, function, 0);
}

}  // namespace tutti::device

#endif
