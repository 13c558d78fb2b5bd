/* Selection by rank, for one type of numbers: REAL is the type, NAME(x) the name of a function for it. */

/* Rearrange n values so that number k is where it would be in order; smaller ones lie before it. */
static REAL NAME(nth)(REAL *values, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const REAL a = values[low], b = values[(low + high) / 2], c = values[high];
        const REAL low_end = a < b ? a : b, high_end = a < b ? b : a, below = high_end < c ? high_end : c;
        const REAL pivot = low_end > below ? low_end : below;
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i <= j) {
                const REAL swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return values[k];
}
