/* Numbers by their rank, without sorting: counts of their leading bits tell where each rank lies. NaN = missing. */
#include "kernels.h"

#define REAL float
#define NAME(name) name##_float
#include "select.h"

enum { LEADING_BITS = 11, BINS = 1 << LEADING_BITS, TABLES = 4 };

/* Take the leading bits of a number, in the order of numbers. */
static inline uint32_t bin_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return (bits & 0x80000000u ? ~bits : bits | 0x80000000u) >> (32 - LEADING_BITS);
}

/* Count numbers by their leading bits; NaN comes last. Successive numbers are counted apart, as they are often alike. */
static void count_bins(int64_t n, const float *values, int32_t *counts) {
    for (int bin = 0; bin < TABLES * BINS; bin++) counts[bin] = 0;
    for (int64_t at = 0; at < n; at++)
        counts[at % TABLES * BINS + (values[at] == values[at] ? bin_of(values[at]) : BINS - 1)]++;
    for (int bin = 0; bin < BINS; bin++)
        for (int table = 1; table < TABLES; table++) counts[bin] += counts[table * BINS + bin];
}

/* Gather the numbers of a bin. */
static int64_t gather(int64_t n, const float *values, uint32_t bin, float *mine) {
    int64_t count = 0;
    for (int64_t at = 0; at < n; at++) {
        mine[count] = values[at];
        count += bin_of(values[at]) == bin && values[at] == values[at];
    }
    return count;
}

/* Find the numbers of some ranks; 0 is the least number. There must be as many that are not missing.
 *
 * counts: (4, 2048), scratch. scratch: (n + 1,). out: (wanted,).
 */
KERNEL void ranks_select(int64_t n, const float *values, int64_t wanted, const int64_t *ranks, int32_t *counts,
                         float *scratch, float *out) {
    uint32_t gathered = BINS;
    int64_t count = 0;
    count_bins(n, values, counts);
    for (int64_t one = 0; one < wanted; one++) {
        int64_t rank = ranks[one];
        uint32_t bin = 0;
        while (rank >= counts[bin]) rank -= counts[bin++];
        if (bin != gathered) count = gather(n, values, bin, scratch);
        gathered = bin;
        out[one] = nth_float(scratch, count, rank);
    }
}

/* Count the numbers that are not missing, and those of them up to a limit. */
KERNEL void ranks_count(int64_t n, const float *values, float limit, int64_t *counts) {
    int64_t known = 0, small = 0;
    for (int64_t at = 0; at < n; at++) {
        known += values[at] == values[at];
        small += values[at] <= limit;
    }
    counts[0] = known;
    counts[1] = small;
}

/* Compute the differences of all pixels to those on their right, and to those below; NaN where one is missing.
 *
 * right: (height, width - 1). below: (height - 1, width).
 */
KERNEL void ranks_steps(int64_t height, int64_t width, const float *values, float *right, float *below) {
    for (int64_t row = 0; row < height; row++, values += width, right += width - 1) {
        for (int64_t at = 0; at + 1 < width; at++) right[at] = __builtin_fabsf(values[at + 1] - values[at]);
        if (row + 1 == height) continue;
        for (int64_t at = 0; at < width; at++) below[row * width + at] = __builtin_fabsf(values[at + width] - values[at]);
    }
}

/* Interpolate between heights at equal distances: the first at `first`, `per_knot` knots for each unit. */
KERNEL void ranks_linear(int64_t n, const float *values, float first, float per_knot, int64_t knots,
                         const float *heights, float *out) {
    const float end = (float)(knots - 1);
    for (int64_t at = 0; at < n; at++) {
        const float along = (values[at] - first) * per_knot, inside = least(most(along, 0), end);
        const int32_t knot = (int32_t)least(inside, end - 1);
        out[at] = heights[knot] + (inside - (float)knot) * (heights[knot + 1] - heights[knot]);
    }
}
