/* What the processor can do; the loader asks the baseline library before it takes a faster one. */
#include "kernels.h"

#ifndef KERNEL_SOURCES
#define KERNEL_SOURCES 0
#endif

/* Return the checksum of the sources that the library was compiled from; 0 = unknown. */
KERNEL uint32_t kernel_sources(void) { return KERNEL_SOURCES; }

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>

static uint64_t enabled_states(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

/* Tell whether AVX2 is there and the operating system saves its registers. */
KERNEL int processor_has_avx2(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0;
    if ((enabled_states() & 6) != 6) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 5));
}
#else
KERNEL int processor_has_avx2(void) { return 0; }
#endif
