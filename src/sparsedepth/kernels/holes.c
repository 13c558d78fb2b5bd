/* Holes of a map: what contains a patch, how far valid pixels are, and how much the map varies around. */
#include "kernels.h"

static int64_t within(int64_t at, int64_t size) { return at < 0 ? 0 : at < size ? at : size - 1; }

/* Mark the missing pixels of all rectangles of `down` by `right` pixels without a valid one.
 *
 * scratch: width numbers. marked: (height, width).
 */
KERNEL void holes_whole(int64_t height, int64_t width, int64_t down, int64_t right, const uint8_t *missing,
                        int64_t *scratch, uint8_t *marked) {
    for (int64_t at = 0; at < width; at++) scratch[at] = 0;
    for (int64_t row = 0; row < height; row++) /* the last pixels of such rectangles */
        for (int64_t at = 0, run = 0; at < width; at++) {
            run = missing[row * width + at] ? run + 1 : 0;
            scratch[at] = run >= right ? scratch[at] + 1 : 0;
            marked[row * width + at] = scratch[at] >= down;
        }
    for (int64_t at = 0; at < width; at++) scratch[at] = 0;
    for (int64_t row = height - 1; row >= 0; row--)
        for (int64_t at = width - 1, run = 0; at >= 0; at--) {
            scratch[at] = marked[row * width + at] ? down : scratch[at] - (scratch[at] > 0);
            run = scratch[at] ? right : run - (run > 0);
            marked[row * width + at] = run > 0;
        }
}

/* Lower the distance of a pixel to those of its neighbours before it and in the row before, in some order, plus one. */
static int32_t nearer(int32_t yet, const int32_t *distance, int64_t back, int64_t pitch, int has_back, int has_row,
                      int has_front) {
    if (has_back && distance[back] + 1 < yet) yet = distance[back] + 1;
    if (has_row && distance[pitch] + 1 < yet) yet = distance[pitch] + 1;
    if (has_row && has_back && distance[pitch + back] + 1 < yet) yet = distance[pitch + back] + 1;
    if (has_row && has_front && distance[pitch - back] + 1 < yet) yet = distance[pitch - back] + 1;
    return yet;
}

/* Compute the distance of each pixel to the nearest valid one, in steps to eight neighbours; none lies beyond the border.
 *
 * distance: (height, width).
 */
KERNEL void holes_distance(int64_t height, int64_t width, const uint8_t *missing, int32_t *distance) {
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            int32_t *here = distance + row * width + column;
            *here = missing[row * width + column] ? (int32_t)(height + width) : 0;
            if (*here) *here = nearer(*here, here, -1, -width, column > 0, row > 0, column + 1 < width);
        }
    for (int64_t row = height - 1; row >= 0; row--)
        for (int64_t column = width - 1; column >= 0; column--) {
            int32_t *here = distance + row * width + column;
            if (*here) *here = nearer(*here, here, 1, width, column + 1 < width, row + 1 < height, column > 0);
        }
}

/* Add a row of a map to sums along columns, of values, of squares and of missing pixels, with a sign. */
static void add_row(int64_t width, const double *values, const uint8_t *missing, double sign, double *sums) {
    for (int64_t at = 0; at < width; at++) {
        sums[at] += sign * values[at];
        sums[width + at] += sign * (values[at] * values[at]);
        sums[2 * width + at] += sign * missing[at];
    }
}

/* Compute the variance of the values in a square about each missing pixel, of a map that goes on as at its edge.
 *
 * side: an even one reaches farther up and to the left. scratch: (3, width). variance: of the missing pixels, in their
 * order; fraction: of the missing pixels in the same squares.
 */
KERNEL void holes_variance(int64_t height, int64_t width, int64_t side, const uint8_t *missing, const double *values,
                           double *scratch, double *variance, double *fraction) {
    const int64_t before = side / 2, behind = side - 1 - before;
    const double pixels = (double)(side * side);
    for (int64_t at = 0; at < 3 * width; at++) scratch[at] = 0;
    for (int64_t row = -before; row < height + behind; row++) {
        const int64_t come = within(row, height) * width, gone = within(row - side, height) * width, centre = row - behind;
        add_row(width, values + come, missing + come, 1, scratch);
        if (row - side >= -before) add_row(width, values + gone, missing + gone, -1, scratch);
        for (int64_t at = 0; centre >= 0 && at < width; at++) {
            if (!missing[centre * width + at]) continue;
            double sum = 0, square = 0, holes = 0;
            for (int64_t right = at - before; right <= at + behind; right++) {
                const int64_t column = within(right, width);
                sum += scratch[column];
                square += scratch[width + column];
                holes += scratch[2 * width + column];
            }
            const double mean = sum / pixels, spread = square / pixels - mean * mean;
            *variance++ = spread > 0 ? spread : 0;
            *fraction++ = holes / pixels;
        }
    }
}
