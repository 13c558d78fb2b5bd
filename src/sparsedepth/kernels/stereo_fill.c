/* Occlusions: which pixels do not match both ways, and the surfaces behind them that go on. */
#include "exponential.h"
#include "kernels.h"

/* Measure by how much the disparities of both views differ at each match, in some rows; outside: infinity. */
KERNEL void stereo_lr_difference(int64_t begin, int64_t end, int64_t width, const float *left, const float *right,
                                 float *difference) {
    for (int64_t y = begin; y < end; y++) {
        for (int64_t x = 0; x < width; x++) {
            const float here = left[y * width + x], place = (float)x - here;
            const int64_t column = (int64_t)(place + 1.5f) - 1;
            const int inside = place > -0.5f && column < width;
            difference[y * width + x] =
                inside ? __builtin_fabsf(right[y * width + column] - here) : __builtin_inff();
        }
    }
}

static int64_t root_of(int32_t *parent, int64_t at) {
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
}

static void join(int32_t *parent, int64_t one, int64_t other) {
    const int64_t a = root_of(parent, one), b = root_of(parent, other);
    if (a < b) parent[b] = (int32_t)a;
    if (b < a) parent[a] = (int32_t)b;
}

/* Find connected sets of fewer than min_px pixels whose neighbours differ by at most a step. parent, size: room. */
KERNEL void stereo_speckles(int64_t height, int64_t width, const float *disparity, int64_t min_px, float step,
                            int32_t *parent, int32_t *size, uint8_t *small) {
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            const int64_t at = y * width + x;
            const float here = disparity[at];
            const int beside = x > 0 && __builtin_fabsf(disparity[at - 1] - here) <= step;
            parent[at] = beside ? parent[at - 1] : (int32_t)at;
            size[at] = 0;
            if (y > 0 && __builtin_fabsf(disparity[at - width] - here) <= step) join(parent, at - width, at);
        }
    }
    for (int64_t at = 0; at < height * width; at++) size[parent[at] = parent[parent[at]]]++; /* Those before have roots. */
    for (int64_t at = 0; at < height * width; at++) small[at] = size[parent[at]] < min_px;
}

/* Pixels less alike than exp(-NEGLIGIBLE) do not count. */
#define NEGLIGIBLE 20.0f

/* How a plane is fitted to the surface of a pixel; see stereo/occlusion.py. */
typedef struct {
    int64_t height, width, radius, every;
    const float *disparity;
    const uint8_t *bad, *guide;
    const float *reach; /* By offset: one over the standard deviation of disparities of one surface. */
    float colour_weight, slope_prior;
} Surface;

/* Solve the symmetric equations of a plane (level, slope across, slope down); return level and slope across. */
static void solve_plane(const double *square, const double *side, double *level, double *slope) {
    const double across = square[1] / square[0], down = square[2] / square[0];
    const double b11 = square[3] - across * square[1], b12 = square[4] - across * square[2];
    const double b22 = square[5] - down * square[2];
    const double s1 = side[1] - across * side[0], s2 = side[2] - down * side[0];
    const double ratio = b12 / b11;
    const double last = (s2 - ratio * s1) / (b22 - ratio * b12);
    *slope = (s1 - b12 * last) / b11;
    *level = (side[0] - square[1] * *slope - square[2] * last) / square[0];
}

/* Add a pixel to the equations of a plane. */
static inline void add_to_plane(double weight, double away, double dx, double dy, double *square, double *side) {
    const double across = weight * dx, down = weight * dy;
    square[0] += weight;
    square[1] += across;
    square[2] += down;
    square[3] += across * dx;
    square[4] += across * dy;
    square[5] += down * dy;
    side[0] += weight * away;
    side[1] += across * away;
    side[2] += down * away;
}

/* Fit a plane to the good pixels around one that are alike in colour and disparity, by ridge regression. */
static inline void fit_plane(const Surface *surface, int64_t n_channels, int64_t y, int64_t x, double *level,
                             double *slope) {
    const int64_t width = surface->width, radius = surface->radius;
    double square[6] = {1e-3, 0, 0, surface->slope_prior, 0, surface->slope_prior}, side[3] = {0, 0, 0};
    const float centre = surface->disparity[y * width + x], *reach = surface->reach;
    const uint8_t *here = surface->guide + y * n_channels * width + x;
    for (int64_t dy = -radius; dy <= radius; dy += surface->every) {
        for (int64_t dx = -radius; dx <= radius; dx += surface->every, reach++) {
            const int64_t row = y + dy, column = x + dx, at = row * width + column;
            if (row < 0 || row >= surface->height || column < 0 || column >= width || surface->bad[at]) continue;
            const uint8_t *there = surface->guide + row * n_channels * width + column;
            int32_t colours = 0;
            for (int64_t channel = 0; channel < n_channels; channel++) {
                const int32_t apart = (int32_t)there[channel * width] - here[channel * width];
                colours += apart * apart;
            }
            const float away = surface->disparity[at] - centre, levels = away * *reach;
            const float unlike = (float)colours * surface->colour_weight + levels * levels / 2;
            if (unlike < NEGLIGIBLE) add_to_plane(exp_of(-unlike), away, (double)dx, (double)dy, square, side);
        }
    }
    solve_plane(square, side, level, slope);
}

/* Fit a plane at each good pixel next to a bad one, in some rows; elsewhere level: the map, slope: zero.
 *
 * reach: (offsets down, offsets across), see above.
 */
KERNEL void stereo_surfaces(int64_t begin, int64_t end, int64_t height, int64_t width, int64_t n_channels,
                            const float *disparity, const uint8_t *bad, const uint8_t *guide, int64_t radius,
                            int64_t every, const float *reach, float colour_weight, float slope_prior, float max_slope,
                            float *level, float *slope) {
    const Surface surface = {height, width, radius, every, disparity, bad, guide, reach, colour_weight, slope_prior};
    for (int64_t at = begin * width; at < end * width; at++) {
        const int64_t y = at / width, x = at % width;
        level[at] = disparity[at];
        slope[at] = 0;
        if (bad[at] || !((x > 0 && bad[at - 1]) || (x < width - 1 && bad[at + 1]))) continue;
        double rise, tilt;
        if (n_channels == 3)
            fit_plane(&surface, 3, y, x, &rise, &tilt);
        else
            fit_plane(&surface, n_channels, y, x, &rise, &tilt);
        level[at] = (float)(disparity[at] + rise);
        slope[at] = most(least((float)tilt, max_slope), -max_slope);
    }
}

/* Fill the bad pixels of some rows with the lower of the surfaces on both sides; source: the row that each takes. */
KERNEL void stereo_background(int64_t begin, int64_t end, int64_t width, const int64_t *source, const float *disparity,
                              const uint8_t *bad, const float *level, const float *slope, float *filled) {
    for (int64_t y = begin; y < end; y++) {
        const int64_t row = source[y] * width;
        int64_t before = -1, behind = -1;
        for (int64_t x = 0; x < width; x++) {
            if (!bad[row + x]) before = x;
            if (behind < x) {
                behind = x;
                while (behind < width && bad[row + behind]) behind++;
            }
            float found = __builtin_inff();
            if (before >= 0) found = most(level[row + before] + slope[row + before] * (float)(x - before), 0);
            if (behind < width)
                found = least(found, most(level[row + behind] + slope[row + behind] * (float)(x - behind), 0));
            filled[y * width + x] = bad[y * width + x] ? found : disparity[y * width + x];
        }
    }
}
