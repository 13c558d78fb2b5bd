/* Patches of a map: which to take, their medians, and the sums of those that overlap. NaN = missing.
 *
 * A patch is given by the place of its first pixel in the map, whose rows are `stride` apart.
 */
#include "kernels.h"

#define REAL float
#define NAME(name) name##_float
#include "select.h"

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

/* Cut patches, subtract their medians and divide by a unit.
 *
 * scratch: one patch. patches: receives (n, height * width). centres, valid: receive medians and numbers of valid pixels.
 */
KERNEL void patches_cut(int64_t n, const int64_t *places, int64_t height, int64_t width, int64_t stride,
                        const float *map, float unit, float *scratch, float *patches, float *centres,
                        int64_t *valid) {
    const float inverse = 1 / unit;
    for (int64_t patch = 0; patch < n; patch++) {
        float *mine = patches + patch * height * width;
        int64_t count = 0;
        for (int64_t row = 0; row < height; row++)
            for (int64_t column = 0; column < width; column++) {
                const float value = map[places[patch] + row * stride + column];
                mine[row * width + column] = value;
                scratch[count] = value;
                count += value == value;
            }
        valid[patch] = count;
        centres[patch] = count ? median(scratch, count) : 0;
        for (int64_t at = 0; at < height * width; at++) mine[at] = (mine[at] - centres[patch]) * inverse;
    }
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
KERNEL void patches_average(int64_t n, const double *sums, double *averages) {
    for (int64_t at = 0; at < n; at++) {
        const double weight = sums[at], some = weight > 0 ? weight : 1;
        const double mean = sums[n + at] / some, variance = sums[2 * n + at] / some - mean * mean;
        averages[at] = weight;
        averages[n + at] = weight > 0 ? mean : __builtin_nan("");
        averages[2 * n + at] = variance > 0 ? variance : 0;
    }
}
