/* Edge-aware smoothing of a map: means of opposite pixels that continue the same tilted surface. */
#include "kernels.h"

/* Add one pair of opposite pixels of a row to the sums of weights and of weighted differences. */
static void add_pair(int64_t width, const float *centre, int64_t offset, const float *narrow, float *total,
                     float *moved) {
    for (int64_t at = 0; at < width; at++) {
        const float away = (centre[at + offset] + centre[at - offset]) * 0.5f - centre[at];
        const float root = most(1 - away * away * narrow[at], 0);
        const float weight = root * root;
        total[at] += weight;
        moved[at] += away * weight;
    }
}

/* Average each pixel with the means of opposite pixels.
 *
 * padded: values with a margin on all sides, missing ones far away. offsets: n pairs (rows, columns). reach: the squared
 * difference that has no weight is reach * variance. scratch: 3 rows. smoothed, ratio: receive the means, and the ratio
 * of variances after to before, by the correlations of pairs with the centre and with each other.
 */
KERNEL void stream_smooth(int64_t height, int64_t width, int64_t margin, const float *padded, const float *variance,
                          const int64_t *offsets, int64_t n, float *scratch, float *smoothed, float *ratio, float reach,
                          float of_centre, float of_pairs, float inflation) {
    const int64_t stride = width + 2 * margin;
    float *narrow = scratch, *total = scratch + width, *moved = scratch + 2 * width;
    for (int64_t row = 0; row < height; row++) {
        const float *centre = padded + (row + margin) * stride + margin;
        for (int64_t at = 0; at < width; at++) {
            narrow[at] = 1 / (reach * variance[row * width + at]);
            total[at] = 0;
            moved[at] = 0;
        }
        for (int64_t pair = 0; pair < n; pair++)
            add_pair(width, centre, offsets[2 * pair] * stride + offsets[2 * pair + 1], narrow, total, moved);
        for (int64_t at = 0; at < width; at++) {
            const float more = 1 + total[at], square = total[at] * total[at];
            smoothed[row * width + at] = moved[at] / more + centre[at];
            ratio[row * width + at] =
                least(inflation * ((1 + 2 * of_centre * total[at] + of_pairs * square) / (more * more)), 1);
        }
    }
}
