/* White noise that second differences show around each pixel, as sensors.floor describes it. NaN = missing. */
#include "kernels.h"

static inline double size_of(double value) { return value < 0 ? -value : value; }

static inline double known_least(double a, double b) { return a != a ? b : b < a ? b : a; }

/* Return the median of three; of fewer, the smallest or the centre. */
static inline double median(double left, double centre, double right) {
    const double middle = centre != centre ? known_least(left, right) : centre;
    const double first = left != left ? middle : left, last = right != right ? middle : right;
    const double low = first < middle ? first : middle, high = first < middle ? middle : first;
    const double rest = high < last ? high : last;
    return low > rest ? low : rest;
}

/* Take medians of three along rows, or along columns. */
static void medians(int64_t height, int64_t width, int along_rows, const double *from, double *to) {
    const double none = __builtin_nan("");
    const int64_t step = along_rows ? 1 : width;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            const int before = along_rows ? column > 0 : row > 0, behind = along_rows ? column + 1 < width : row + 1 < height;
            to[at] = median(before ? from[at - step] : none, from[at], behind ? from[at + step] : none);
        }
}

/* Compute the smallest second difference of each pixel in four directions; NaN where fewer than two are known. */
static void differences(int64_t height, int64_t width, const double *depth, double *shown) {
    const int64_t steps[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const double *here = depth + row * width + column;
            double least_yet = __builtin_nan("");
            int seen = 0;
            for (int way = 0; way < 4; way++) {
                const int64_t down = steps[way][0], right = steps[way][1], step = down * width + right;
                if (row < down || row + down >= height || column < 1 - (right == 0)) continue;
                if (right && column + 1 >= width) continue;
                const double difference = size_of(here[step] + here[-step] - 2 * *here);
                least_yet = difference != difference ? least_yet : known_least(least_yet, difference);
                seen += difference - difference == 0;
            }
            shown[row * width + column] = seen > 1 ? least_yet : __builtin_nan("");
        }
}

/* Compute the noise that a map shows, its differences divided by `unit`; scratch is as large as the map. */
KERNEL void floor_shown(int64_t height, int64_t width, const double *depth, double unit, double *scratch,
                        double *shown) {
    differences(height, width, depth, shown);
    for (int turn = 0; turn < 2; turn++) {
        medians(height, width, 1, shown, scratch);
        medians(height, width, 0, scratch, shown);
    }
    for (int64_t at = 0; at < height * width; at++) {
        const double value = shown[at] - shown[at] == 0 ? shown[at] : 0;
        shown[at] = depth[at] - depth[at] == 0 ? value / unit : __builtin_nan("");
    }
}
