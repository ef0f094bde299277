// SPDX-License-Identifier: Apache-2.0
#include "fibers.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <vector>

// swapcontext() makes a system call; AddressSanitizer supports nothing else.
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
#define CT2T_UCONTEXT
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef CT2T_UCONTEXT
// Puts the registers that a called function keeps on the stack, writes where that is to `left`, and
// goes on with the stack `entered`, which was left in the same way. Control words of floating-point
// numbers are those of the thread.
extern "C" void ct2t_emulation_switch(void** left, void* entered);
asm(R"(
  .pushsection .text
  .hidden ct2t_emulation_switch
  .globl ct2t_emulation_switch
  .type ct2t_emulation_switch, @function
ct2t_emulation_switch:
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
  .size ct2t_emulation_switch, . - ct2t_emulation_switch
  .popsection
)");
#endif

namespace emulation {

Thread* running;
Dim block_index, block_dim, grid_dim;

namespace {

constexpr size_t kStack = 64 << 10;

struct Meeting {  // a barrier of the threads of a block or of a warp
  int members = 0, arrived = 0;
  unsigned past = 0;
  const char* operation = nullptr;
  void* operands[32] = {};
};

struct Fiber : Thread {
#ifdef CT2T_UCONTEXT
  ucontext_t context;
#else
  void* top = nullptr;  // of its stack, while another runs
#endif
  bool done = true;
  const Meeting* waits = nullptr;
  unsigned until = 0;
  std::unique_ptr<char[]> stack{new char[kStack]};
  void* fake_stack = nullptr;  // for AddressSanitizer
};

std::vector<std::unique_ptr<Fiber>> fibers;
const Kernel* kernel;
const void* kernel_args;
Meeting of_block;
std::vector<Meeting> of_warp;
unsigned char* block_memory;
unsigned order_seed;

std::map<std::string, Kernel>& Kernels() {
  static std::map<std::string, Kernel> kernels;
  return kernels;
}

[[noreturn]] void Fail(const char* what, const char* operation) {
  std::fprintf(stderr, "emulation: block (%u, %u): %s: %s\n", block_index.x, block_index.y, what,
               operation);
  std::abort();
}

#ifdef CT2T_UCONTEXT
ucontext_t scheduler;
#ifdef __SANITIZE_ADDRESS__
const void* scheduler_stack;
size_t scheduler_size;
#endif

void ToScheduler() {
  auto* own = static_cast<Fiber*>(running);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&own->fake_stack, scheduler_stack, scheduler_size);
#endif
  swapcontext(&own->context, &scheduler);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(own->fake_stack, &scheduler_stack, &scheduler_size);
#endif
}

void ToFiber(Fiber* fiber) {
  running = fiber;
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, fiber->stack.get(), kStack);
#endif
  swapcontext(&scheduler, &fiber->context);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}
#else
void* scheduler_top;

void ToScheduler() { ct2t_emulation_switch(&static_cast<Fiber*>(running)->top, scheduler_top); }

void ToFiber(Fiber* fiber) {
  running = fiber;
  ct2t_emulation_switch(&scheduler_top, fiber->top);
}
#endif

void Release(Meeting* meeting) {
  meeting->arrived = 0;
  meeting->operation = nullptr;
  ++meeting->past;
}

void Wait(Meeting* meeting) {
  auto* own = static_cast<Fiber*>(running);
  own->waits = meeting;
  own->until = meeting->past + 1;
  ToScheduler();
  own->waits = nullptr;
}

// Each fiber runs one thread of a block, for all blocks in turn.
void Main() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
  for (;;) {
    kernel->run(kernel_args);
    auto* own = static_cast<Fiber*>(running);
    own->done = true;
    if (--of_block.members == of_block.arrived && of_block.arrived > 0) Release(&of_block);
    Meeting& warp = of_warp[own->index.x / 32];
    if (warp.arrived > 0) Fail("a lane ends while others wait at", warp.operation);
    --warp.members;
    ToScheduler();
  }
}

std::unique_ptr<Fiber> NewFiber() {
  auto fiber = std::make_unique<Fiber>();
#ifdef CT2T_UCONTEXT
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, Main, 0);
#else
  // As the switch leaves a stack: six registers, where to go on, and an address to return to.
  const auto end = reinterpret_cast<uintptr_t>(fiber->stack.get() + kStack) / 16 * 16;
  auto* top = reinterpret_cast<uintptr_t*>(end) - 8;
  std::fill(top, top + 8, 0);
  top[6] = reinterpret_cast<uintptr_t>(&Main);
  fiber->top = top;
#endif
  return fiber;
}

std::vector<std::vector<Fiber*>> GroupsOfBlock(std::mt19937* random) {
  const unsigned threads = block_dim.x;
  while (fibers.size() < threads) fibers.push_back(NewFiber());
  of_block = {};
  of_block.members = static_cast<int>(threads);
  of_warp.assign((threads + 31) / 32, {});
  std::vector<Fiber*> order;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber* fiber = fibers[i].get();
    fiber->index = {i, 0, 0};
    fiber->done = false;
    ++of_warp[i / 32].members;
    order.push_back(fiber);
  }
  if (order_seed == 1) std::reverse(order.begin(), order.end());
  if (order_seed > 1) std::shuffle(order.begin(), order.end(), *random);
  if (order_seed % 2 == 0) return {order};
  std::vector<std::vector<Fiber*>> groups(of_warp.size());
  for (Fiber* fiber : order) groups[fiber->index.x / 32].push_back(fiber);
  std::shuffle(groups.begin(), groups.end(), *random);
  return groups;
}

// Odd seeds: each warp runs as far as it can before the next one. Even seeds: round-robin.
void RunBlock(std::mt19937* random) {
  const auto groups = GroupsOfBlock(random);
  for (unsigned left = block_dim.x; left > 0;) {
    const auto go_on = [&left](const std::vector<Fiber*>& group) {
      bool any = false;
      for (Fiber* fiber : group) {
        const Meeting* waits = fiber->waits;
        if (fiber->done || (waits != nullptr && waits->past != fiber->until)) continue;
        ToFiber(fiber);
        any = true;
        if (fiber->done) --left;
      }
      return any;
    };
    bool any = false;
    for (const auto& group : groups) {
      while (go_on(group)) any = true;
    }
    if (!any) Fail("threads wait in vain", "barrier");
  }
}

}  // namespace

bool Register(const char* name, size_t args_bytes, unsigned threads, Run run) {
  Kernels()[name] = {args_bytes, threads, run};
  return true;
}

const Kernel* Find(const std::string& name) {
  const auto found = Kernels().find(name);
  return found == Kernels().end() ? nullptr : &found->second;
}

void Seed(unsigned seed) { order_seed = seed; }

void WaitForBlock() {
  if (++of_block.arrived == of_block.members) return Release(&of_block);
  Wait(&of_block);
}

void WaitForWarp(const char* operation, void* operand, Combine combine) {
  const unsigned thread = running->index.x;
  Meeting& warp = of_warp[thread / 32];
  if (warp.members != 32) Fail("a lane has ended before", operation);
  if (warp.arrived > 0 && warp.operation != operation) Fail("lanes differ at", operation);
  warp.operation = operation;
  warp.operands[thread % 32] = operand;
  if (++warp.arrived < 32) return Wait(&warp);
  combine(warp.operands);
  Release(&warp);
}

unsigned char* BlockMemory() { return block_memory; }

void Launch(const Kernel& called, const void* args, Dim grid, Dim block, size_t shared_bytes) {
  kernel = &called;
  kernel_args = args;
  grid_dim = grid;
  block_dim = block;
  if (block.x > called.threads) Fail("a block has more threads than", "__launch_bounds__");
  std::mt19937 random(order_seed);
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      // An allocation of its own, so that AddressSanitizer detects accesses beyond it.
      const size_t bytes = (shared_bytes + 127) / 128 * 128;
      const std::unique_ptr<unsigned char, decltype(&std::free)> memory(
          static_cast<unsigned char*>(std::aligned_alloc(128, std::max<size_t>(bytes, 128))),
          &std::free);
      std::memset(memory.get(), 0xff, bytes);
      block_memory = memory.get();
      block_index = {x, y, 0};
      RunBlock(&random);
    }
  }
}

}  // namespace emulation
