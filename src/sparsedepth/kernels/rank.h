/* Selection by rank without branches, for one type of whole numbers: KEY is the type, NAME(x) the name of a function. */

/* Return number k, in ascending order, of n keys: halve the range of those that are left. */
static KEY NAME(ranked)(const KEY *keys, int64_t n, KEY k) {
    KEY low = keys[0], high = keys[0];
    for (int64_t at = 1; at < n; at++) {
        low = keys[at] < low ? keys[at] : low;
        high = keys[at] > high ? keys[at] : high;
    }
    while (low < high) {
        const KEY middle = (low & high) + ((low ^ high) >> 1);
        KEY count = 0, last = low, first = high;
        for (int64_t at = 0; at < n; at++) {
            const KEY key = keys[at], under = key <= middle ? key : low, over = key <= middle ? high : key;
            count += key <= middle;
            last = under > last ? under : last;
            first = over < first ? over : first;
        }
        if (k < count) high = last;
        else low = first;
    }
    return low;
}
