// SPDX-License-Identifier: Apache-2.0
// The kernels, compiled for this CPU.
#define CT2T_EMULATE
#include "../kernels.cu"
