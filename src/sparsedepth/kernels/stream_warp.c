/* The belief of a stream in the view of a moved camera: a z-buffer decides what is visible, the old view is sampled. */
#include "kernels.h"

typedef struct {
    float fx, fy, cx, cy;
} Camera;

/* Project a point at a depth along the ray (x / z, y / z) after a motion, the first three rows of a (4, 4) matrix. */
static inline float project(const Camera *camera, const float *motion, float depth, float x, float y, float *column,
                            float *row) {
    const float far = depth * (motion[8] * x + (motion[9] * y + motion[10])) + motion[11];
    const float right = depth * (motion[0] * x + (motion[1] * y + motion[2])) + motion[3];
    const float down = depth * (motion[4] * x + (motion[5] * y + motion[6])) + motion[7];
    *column = right / far * camera->fx + camera->cx;
    *row = down / far * camera->fy + camera->cy;
    return far;
}

/* Round to the nearest whole number of a value that is not negative. */
static inline int64_t nearest_to(float value) { return (int64_t)(value + 0.5f); }

/* Project all pixels to the nearest ones of the new view; near receives the largest inverse depth of each, 0 = none. */
KERNEL void stream_splat(int64_t height, int64_t width, const float *depth, const float *intrinsics,
                         const float *motion, float *near) {
    const Camera camera = {intrinsics[0], intrinsics[1], intrinsics[2], intrinsics[3]};
    for (int64_t at = 0; at < height * width; at++) near[at] = 0;
    for (int64_t row = 0; row < height; row++) {
        const float y = ((float)row - camera.cy) / camera.fy;
        for (int64_t column = 0; column < width; column++) {
            const float z = depth[row * width + column], x = ((float)column - camera.cx) / camera.fx;
            float to_column, to_row;
            const float far = project(&camera, motion, z, x, y, &to_column, &to_row);
            if (!(far > 0 && to_column >= -0.5f && to_row >= -0.5f)) continue;
            if (!(to_column < (float)width - 0.5f && to_row < (float)height - 0.5f)) continue;
            float *place = near + nearest_to(to_row) * width + nearest_to(to_column);
            *place = most(*place, 1 / far);
        }
    }
}

/* Close a pixel between two of one surface, if nothing or something farther shows there. */
static inline float closed_between(float one, float other, float here, float crack, float so_far) {
    const float low = least(one, other), high = most(one, other);
    return high - low < crack * low && here < low * (1 - crack) ? (low + high) / 2 : so_far;
}

/* Close gaps of one pixel, across and down; crack: relative difference of inverse depths within one surface. */
KERNEL void stream_close(int64_t height, int64_t width, const float *near, float *closed, float crack) {
    for (int64_t row = 0; row < height; row++) {
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            float found = near[at];
            if (column > 0 && column < width - 1)
                found = closed_between(near[at - 1], near[at + 1], near[at], crack, found);
            if (row > 0 && row < height - 1)
                found = closed_between(near[at - width], near[at + width], near[at], crack, found);
            closed[at] = found;
        }
    }
}

/* Take, of the four pixels around, the one that is nearest to what is expected; NaN has no distance. */
static int64_t best_of_four(const float *mean, const int64_t *corners, float expected) {
    int64_t best = corners[0];
    float away = __builtin_inff();
    for (int64_t one = 0; one < 4; one++) {
        const float gap = __builtin_fabsf(mean[corners[one]] - expected);
        if (gap < away) {
            away = gap;
            best = corners[one];
        }
    }
    return best;
}

/* Sample the old view where the pixels of the new one look: bilinearly, at steps the nearest pixel that fits.
 *
 * near: inverse depths of the new view, 0 = none. expected: values on the axis of the depths that stream_look wrote.
 * noise: variance of one measurement at each old pixel. value: receives means in the old view; from: the pixel whose
 * state is taken, -1 = none; slope: squared difference of adjacent pixels, or of the value from what is expected.
 */
KERNEL void stream_sample(int64_t height, int64_t width, const float *mean, const float *noise, const float *columns,
                          const float *rows, const float *expected, float *value, int64_t *from, float *slope,
                          float edge) {
    for (int64_t at = 0; at < height * width; at++) {
        const float raw_column = columns[at], raw_row = rows[at];
        from[at] = -1;
        value[at] = __builtin_nanf("");
        slope[at] = 0;
        if (!(raw_column > -1 && raw_column < (float)width && raw_row > -1 && raw_row < (float)height)) continue;
        const float column = most(least(raw_column, (float)(width - 1)), 0);
        const float row = most(least(raw_row, (float)(height - 1)), 0);
        const int64_t left = (int64_t)least(column, (float)(width - 2)), top = (int64_t)least(row, (float)(height - 2));
        const float x = column - (float)left, y = row - (float)top;
        const int64_t corner = top * width + left;
        const int64_t corners[4] = {corner, corner + 1, corner + width, corner + width + 1};
        const float a = mean[corners[0]], b = mean[corners[1]], c = mean[corners[2]], d = mean[corners[3]];
        const float upper = a + x * (b - a), tilt = (b - a) * (b - a) + (c - a) * (c - a);
        const int64_t middle = nearest_to(row) * width + nearest_to(column);
        value[at] = upper + y * (c + x * (d - c) - upper);
        from[at] = middle;
        slope[at] = tilt;
        if (tilt <= edge * noise[middle] && value[at] == value[at]) continue;
        from[at] = best_of_four(mean, corners, expected[at]);
        value[at] = mean[from[at]];
        const float away = value[at] - expected[at];
        slope[at] = away == away ? away * away : 0;
        if (value[at] != value[at]) from[at] = -1;
    }
}

/* Find where the pixels of the new view look in the old one: columns and rows (NaN = nowhere), and depths there. */
KERNEL void stream_look(int64_t height, int64_t width, const float *near, const float *intrinsics, const float *back,
                        float *columns, float *rows, float *depths) {
    const Camera camera = {intrinsics[0], intrinsics[1], intrinsics[2], intrinsics[3]};
    for (int64_t row = 0; row < height; row++) {
        const float y = ((float)row - camera.cy) / camera.fy;
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            const float x = ((float)column - camera.cx) / camera.fx;
            depths[at] = project(&camera, back, 1 / near[at], x, y, columns + at, rows + at);
            if (!(near[at] > 0)) columns[at] = __builtin_nanf("");
        }
    }
}

/* Bring sampled values to the new view: depth along the rays of the old one, after the motion. */
KERNEL void stream_bring(int64_t n, const float *depth, const float *columns, const float *rows, int64_t height,
                         int64_t width, const float *intrinsics, const float *motion, float *brought) {
    const Camera camera = {intrinsics[0], intrinsics[1], intrinsics[2], intrinsics[3]};
    for (int64_t at = 0; at < n; at++) {
        const float x = (most(least(columns[at], (float)(width - 1)), 0) - camera.cx) / camera.fx;
        const float y = (most(least(rows[at], (float)(height - 1)), 0) - camera.cy) / camera.fy;
        brought[at] = depth[at] * (motion[8] * x + (motion[9] * y + motion[10])) + motion[11];
    }
}

/* Take the state of old pixels; unknown = what is written where there is none. */
KERNEL void stream_take(int64_t n, const int64_t *from, const float *old, float *taken, float unknown) {
    for (int64_t at = 0; at < n; at++) taken[at] = from[at] < 0 ? unknown : old[from[at]];
}

/* Average square cells of a map: the pixels that lie within sigmas standard deviations of the cell's centre.
 *
 * mean, variance: (height, width). Writes the averages of both, (height / side, width / side); NaN in cells of which
 * fewer than a share agrees.
 */
KERNEL void stream_average_cells(int64_t height, int64_t width, int64_t side, const float *mean, const float *variance,
                                 float sigmas, float share, float *mean_out, float *variance_out) {
    const int64_t down = height / side, across = width / side;
    const float fewest = share * (float)(side * side), reach = sigmas * sigmas;
    for (int64_t row = 0; row < down; row++) {
        for (int64_t column = 0; column < across; column++) {
            const int64_t corner = row * side * width + column * side;
            const float centre = mean[corner + side / 2 * (width + 1)];
            float count = 0, total = 0, spread = 0;
            for (int64_t y = 0; y < side; y++) {
                for (int64_t x = 0; x < side; x++) {
                    const int64_t at = corner + y * width + x;
                    const float apart = mean[at] - centre;
                    if (!(apart * apart <= reach * variance[at])) continue;
                    count += 1;
                    total += mean[at];
                    spread += variance[at];
                }
            }
            const int known = count >= fewest && count > 0;
            mean_out[row * across + column] = known ? total / count : __builtin_nanf("");
            variance_out[row * across + column] = known ? spread / count : __builtin_inff();
        }
    }
}
