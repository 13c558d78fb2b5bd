/* Robust quadratic surfaces of windows of a map, as sensors.windows fits them. NaN = missing. */
#include "kernels.h"
#include "lanes.h"

#define REAL float
#define NAME(name) name##_float
#include "select.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_double
#include "select.h"
#undef REAL
#undef NAME

enum { TERMS = 6 };

/* Add up the products of three rows; the last one may be omitted. */
static inline float sum_products(int64_t n, const float *a, const float *b, const float *c) {
    Lanes sum[PARTS] = {{0}};
    float rest = 0, sums[LANES];
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES)
        for (int part = 0; part < PARTS; part++) {
            const int64_t from = at + part * HELD;
            Lanes product = *(const Lanes *)(a + from) * *(const Lanes *)(b + from);
            if (c) product *= *(const Lanes *)(c + from);
            sum[part] += product;
        }
    for (; at < n; at++) rest += a[at] * b[at] * (c ? c[at] : 1);
    for (int part = 0; part < PARTS; part++) ((Lanes *)sums)[part] = sum[part];
    return rest + sum_lanes(sums);
}

/* Solve a positive definite system by elimination; the matrix is lost. */
static void solve(double matrix[TERMS][TERMS], double *values) {
    for (int pivot = 0; pivot < TERMS; pivot++)
        for (int row = pivot + 1; row < TERMS; row++) {
            const double factor = matrix[row][pivot] / matrix[pivot][pivot];
            for (int at = pivot; at < TERMS; at++) matrix[row][at] -= factor * matrix[pivot][at];
            values[row] -= factor * values[pivot];
        }
    for (int row = TERMS - 1; row >= 0; row--) {
        for (int at = row + 1; at < TERMS; at++) values[row] -= matrix[row][at] * values[at];
        values[row] /= matrix[row][row];
    }
}

/* Subtract the surface that fits best under weights. */
static void subtract_surface(int64_t pixels, const float *basis, const float *values, const float *weight,
                             float *weighted, float *residual) {
    double normal[TERMS][TERMS], terms[TERMS];
    for (int64_t at = 0; at < pixels; at++) weighted[at] = weight[at] * values[at];
    for (int one = 0; one < TERMS; one++) {
        for (int other = 0; other <= one; other++)
            normal[one][other] = normal[other][one] =
                sum_products(pixels, weight, basis + one * pixels, basis + other * pixels);
        normal[one][one] += 1e-6;
        terms[one] = sum_products(pixels, weighted, basis + one * pixels, 0);
    }
    solve(normal, terms);
    for (int64_t at = 0; at < pixels; at++) residual[at] = values[at];
    for (int one = 0; one < TERMS; one++) {
        const float term = (float)terms[one];
        for (int64_t at = 0; at < pixels; at++) residual[at] -= term * basis[one * pixels + at];
    }
}

/* Compute the lower median of the sizes of sampled residuals; 0 if all are missing. */
static float median_size(int64_t n_sample, const int64_t *sample, const float *known, const float *residual,
                         float *scratch) {
    int64_t count = 0;
    for (int64_t at = 0; at < n_sample; at++) {
        const float value = residual[sample[at]];
        scratch[count] = value < 0 ? -value : value;
        count += known[sample[at]] > 0;
    }
    return count ? nth_float(scratch, count, (count - 1) / 2) : 0;
}

/* Divide a window by its spread about its level, both medians of sampled pixels; tell whether there are any. */
static int standardise(int64_t pixels, int64_t n_sample, const int64_t *sample, const double *row, double *scratch,
                       float *known, float *values, double *level, double *spread) {
    int64_t count = 0;
    for (int64_t at = 0; at < n_sample; at++) {
        scratch[count] = row[sample[at]];
        count += scratch[count] - scratch[count] == 0;
    }
    if (!count) return 0;
    *level = nth_double(scratch, count, (count - 1) / 2);
    for (int64_t at = 0; at < count; at++) scratch[at] = scratch[at] < *level ? *level - scratch[at] : scratch[at] - *level;
    *spread = nth_double(scratch, count, (count - 1) / 2);
    const double least_spread = 1e-9 * (*level < 0 ? -*level : *level) + 1e-300;
    if (*spread < least_spread) *spread = least_spread;
    for (int64_t at = 0; at < pixels; at++) {
        known[at] = row[at] - row[at] == 0;
        values[at] = known[at] > 0 ? (float)((row[at] - *level) / *spread) : 0;
    }
    return 1;
}

/* Cut a square window out of a map. */
static void cut(int64_t side, int64_t pitch, const double *from, double *row) {
    for (int64_t down = 0; down < side; down++)
        for (int64_t at = 0; at < side; at++) row[down * side + at] = from[down * pitch + at];
}

/* Fit square windows of a map by surfaces with Tukey's biweight.
 *
 * map: its rows are `pitch` apart. places: of the first pixels of windows, (n,). basis: (6, pixels), orthonormal. sample:
 * numbers of the pixels whose medians are taken. to_std: from a median of sizes to a standard deviation. tukey, sigmas:
 * where the biweight ends, and where an inlier ends. scratch: 3 * pixels + n_sample. wide: pixels + n_sample. Receive:
 * residual and inlier, (n, pixels); std of inliers and level, (n,), level NaN where nothing is sampled; counts of inliers
 * and of valid pixels, (n, 2).
 */
KERNEL void windows_fit(int64_t n, int64_t side, int64_t pitch, int64_t n_sample, const double *map,
                        const int64_t *places, const float *basis, const int64_t *sample, int64_t iterations, float to_std, float tukey, float sigmas,
                        float *scratch, double *wide, float *residual, uint8_t *inlier, double *std, double *level,
                        int64_t *counts) {
    const int64_t pixels = side * side;
    double *row = wide + n_sample;
    float *known = scratch, *values = scratch + pixels, *weight = scratch + 2 * pixels, *some = scratch + 3 * pixels;
    for (int64_t window = 0; window < n; window++) {
        float *mine = residual + window * pixels, scale = 0;
        double spread = 0, sum = 0;
        int64_t inliers = 0, valid = 0;
        level[window] = __builtin_nan("");
        cut(side, pitch, map + places[window], row);
        if (standardise(pixels, n_sample, sample, row, wide, known, values, level + window, &spread)) {
            for (int64_t at = 0; at < pixels; at++) weight[at] = known[at];
            for (int64_t round = 0; round < iterations; round++) {
                subtract_surface(pixels, basis, values, weight, mine, mine);
                scale = most(to_std * median_size(n_sample, sample, known, mine, some), 1e-12f);
                const float inverse = 1 / (tukey * scale);
                for (int64_t at = 0; at < pixels; at++) {
                    const float ratio = mine[at] * inverse, rest = most(1 - ratio * ratio, 0);
                    weight[at] = known[at] * rest * rest;
                }
            }
        } else
            for (int64_t at = 0; at < pixels; at++) mine[at] = known[at] = 0;
        for (int64_t at = 0; at < pixels; at++) {
            const float size = mine[at] < 0 ? -mine[at] : mine[at];
            const uint8_t is_inlier = known[at] > 0 && size <= sigmas * scale;
            inlier[window * pixels + at] = is_inlier;
            inliers += is_inlier;
            valid += known[at] > 0;
            sum += is_inlier ? (double)size * (double)size : 0;
            if (!(known[at] > 0)) mine[at] = 0;
        }
        std[window] = __builtin_sqrt(sum / (double)(inliers - TERMS > 1 ? inliers - TERMS : 1)) * spread;
        counts[2 * window] = inliers;
        counts[2 * window + 1] = valid;
    }
}
