/* Planes in segments of a picture: how well pixels agree with them, and the best ones through those that do.
 *
 * Pixels are listed segment by segment: start[s] is the first of segment s, start[n] their number. A place is a column
 * and a row from the centre of the segment; a plane is a slope along each, and a height at the centre.
 */
#include "kernels.h"

/* Distance of a pixel from a plane; NaN if the plane is. */
static inline double away(const double *place, double value, const double *plane) {
    return __builtin_fabs(plane[0] * place[0] + plane[1] * place[1] + plane[2] - value);
}

/* Score planes: each pixel adds 1 on the plane, and less away from it, down to 0 from the tolerance on. */
KERNEL void planes_score(int64_t n, const int64_t *start, const double *place, const double *value,
                         const double *planes, double tolerance, double *scores) {
    for (int64_t s = 0; s < n; s++) {
        scores[s] = 0;
        for (int64_t k = start[s]; k < start[s + 1]; k++) {
            const double distance = away(place + 2 * k, value[k], planes + 3 * s) / tolerance;
            const double score = 1 - distance * distance;
            scores[s] += score > 0 ? score : 0;
        }
    }
}

/* Sum up the normal equations of least squares over the pixels near each plane: (n, 3, 3) and (n, 3). */
KERNEL void planes_normal_equations(int64_t n, const int64_t *start, const double *place, const double *value,
                                    const double *planes, double tolerance, double *normal, double *right) {
    for (int64_t s = 0; s < n; s++) {
        double *square = normal + 9 * s, *side = right + 3 * s;
        for (int i = 0; i < 9; i++) square[i] = 0;
        for (int i = 0; i < 3; i++) side[i] = 0;
        for (int64_t k = start[s]; k < start[s + 1]; k++) {
            if (!(away(place + 2 * k, value[k], planes + 3 * s) < tolerance)) continue;
            const double basis[3] = {place[2 * k], place[2 * k + 1], 1};
            for (int i = 0; i < 3; i++) {
                side[i] += basis[i] * value[k];
                for (int j = 0; j < 3; j++) square[3 * i + j] += basis[i] * basis[j];
            }
        }
    }
}

/* Draw the plane of each pixel's segment; centre: (segments, 2), column and row. */
KERNEL void planes_draw(int64_t height, int64_t width, const int32_t *segments, const double *planes,
                        const double *centre, double *drawn) {
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const int64_t s = segments[row * width + column];
            const double *plane = planes + 3 * s;
            drawn[row * width + column] = plane[0] * ((double)column - centre[2 * s]) +
                                          plane[1] * ((double)row - centre[2 * s + 1]) + plane[2];
        }
}
