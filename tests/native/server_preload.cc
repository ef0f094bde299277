// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into tritonserver behind a sanitizer's runtime. With AddressSanitizer or
// ThreadSanitizer in the process, and whatever backend, the finaliser of the wheel's libp11-kit
// waits in freelocale for ever: the count of glibc's lock of locales is wrong by then. Nothing of
// a process that ends needs its locales freed.
extern "C" void freelocale(void*) {}
