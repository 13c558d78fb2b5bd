/* Patches of a map: which to take, their medians, and the sums of those that overlap. NaN = missing.
 *
 * A patch is given by the place of its first pixel in the map, whose rows are `stride` apart.
 */
#include "kernels.h"

#define REAL float
#define NAME(name) name##_float
#include "select.h"

enum { TOGETHER = 32, SORTED = 64 };
/* Patches whose medians are found together, and the most pixels that these have. */

static float median(float *values, int64_t n) {
    const float upper = nth_float(values, n, n / 2);
    if (n % 2) return upper;
    float lower = values[0];
    for (int64_t at = 1; at < n / 2; at++) lower = most(lower, values[at]);
    return (lower + upper) / 2;
}

/* Mark the patches that hold a marked pixel at one of `n_offsets` places, relative to their first pixel. */
KERNEL void patches_holding(int64_t n, const int64_t *places, int64_t n_offsets, const int64_t *offsets,
                            const uint8_t *marked, uint8_t *holds) {
    for (int64_t patch = 0; patch < n; patch++) {
        uint8_t any = 0;
        for (int64_t at = 0; at < n_offsets; at++) any |= marked[places[patch] + offsets[at]];
        holds[patch] = any;
    }
}

/* Sort columns of n numbers by Batcher's odd-even merges: the same exchanges in every column. */
static void sort_columns(int64_t n, float (*column)[TOGETHER]) {
    for (int64_t run = 1; run < n; run *= 2)
        for (int64_t gap = run; gap; gap /= 2)
            for (int64_t low = gap % run; low + gap < n; low += 2 * gap)
                for (int64_t one = low; one < low + gap && one + gap < n; one++) {
                    if (one / (2 * run) != (one + gap) / (2 * run)) continue;
                    float *restrict first = column[one], *restrict second = column[one + gap];
                    for (int at = 0; at < TOGETHER; at++) {
                        const float here = first[at], there = second[at];
                        first[at] = least(here, there);
                        second[at] = most(here, there);
                    }
                }
}

/* Find the medians of some patches of up to SORTED pixels at once; 0 where all are missing. */
static void medians_together(int64_t some, int64_t pixels, const float *patches, const int64_t *valid, float *centres) {
    float columns[SORTED][TOGETHER];
    for (int64_t at = 0; at < pixels; at++)
        for (int64_t one = 0; one < TOGETHER; one++) {
            const float value = patches[(one < some ? one : 0) * pixels + at];
            columns[at][one] = value == value ? value : __builtin_inff();
        }
    sort_columns(pixels, columns);
    for (int64_t one = 0; one < some; one++) {
        const int64_t n = valid[one];
        centres[one] = n ? (columns[(n - 1) / 2][one] + columns[n / 2][one]) / 2 : 0;
    }
}

/* Find the median of a large patch. scratch: one patch. */
static float median_alone(int64_t pixels, const float *patch, float *scratch) {
    int64_t count = 0;
    for (int64_t at = 0; at < pixels; at++) {
        scratch[count] = patch[at];
        count += patch[at] == patch[at];
    }
    return count ? median(scratch, count) : 0;
}

/* Cut patches, subtract their medians and divide by a unit.
 *
 * scratch: one patch. patches: receives (n, height * width). centres, valid: receive medians and numbers of valid pixels.
 */
KERNEL void patches_cut(int64_t n, const int64_t *places, int64_t height, int64_t width, int64_t stride,
                        const float *map, float unit, float *scratch, float *patches, float *centres,
                        int64_t *valid) {
    const int64_t pixels = height * width;
    const float inverse = 1 / unit;
    for (int64_t patch = 0; patch < n; patch++) {
        float *mine = patches + patch * pixels;
        int64_t count = 0;
        for (int64_t row = 0; row < height; row++)
            for (int64_t column = 0; column < width; column++)
                mine[row * width + column] = map[places[patch] + row * stride + column];
        for (int64_t at = 0; at < pixels; at++) count += mine[at] == mine[at];
        valid[patch] = count;
    }
    for (int64_t patch = 0; pixels > SORTED && patch < n; patch++)
        centres[patch] = median_alone(pixels, patches + patch * pixels, scratch);
    for (int64_t patch = 0; pixels <= SORTED && patch < n; patch += TOGETHER) {
        const int64_t some = n - patch < TOGETHER ? n - patch : TOGETHER;
        medians_together(some, pixels, patches + patch * pixels, valid + patch, centres + patch);
    }
    for (int64_t patch = 0; patch < n; patch++)
        for (int64_t at = patch * pixels; at < (patch + 1) * pixels; at++)
            patches[at] = (patches[at] - centres[patch]) * inverse;
}

/* Add weights, weighted values and weighted squared values of patches to three maps, each `size` numbers.
 *
 * values: (n, height * width), in units of `scale` above `centres`. of_patch, of_pixel: factors of the weights.
 */
KERNEL void patches_add(int64_t n, const int64_t *places, int64_t height, int64_t width, int64_t stride, int64_t size,
                        const float *values, const double *scale, const double *centres, const double *of_patch,
                        const double *of_pixel, double *sums) {
    for (int64_t patch = 0; patch < n; patch++)
        for (int64_t row = 0; row < height; row++) {
            double *weights = sums + places[patch] + row * stride, *totals = weights + size, *squares = totals + size;
            const float *mine = values + (patch * height + row) * width;
            for (int64_t column = 0; column < width; column++) {
                const double value = (double)mine[column] * scale[patch] + centres[patch];
                const double weight = of_patch[patch] * of_pixel[row * width + column];
                weights[column] += weight;
                totals[column] += weight * value;
                squares[column] += weight * value * value;
            }
        }
}

/* Divide sums by their weights: (3, n), weights, totals and squares, to weights, means (NaN = none) and variances. */
#define AVERAGE(type)                                                                                                  \
    KERNEL void patches_average_##type(int64_t n, const double *sums, type *averages) {                                \
        for (int64_t at = 0; at < n; at++) {                                                                           \
            const double weight = sums[at], some = weight > 0 ? weight : 1;                                            \
            const double mean = sums[n + at] / some, variance = sums[2 * n + at] / some - mean * mean;                 \
            averages[at] = (type)weight;                                                                               \
            averages[n + at] = (type)(weight > 0 ? mean : __builtin_nan(""));                                          \
            averages[2 * n + at] = (type)(variance > 0 ? variance : 0);                                                \
        }                                                                                                              \
    }
AVERAGE(float)
AVERAGE(double)
