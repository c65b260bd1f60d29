/* The only program of the holder, a container of nothing but networks: it does nothing while its server lives.
 *
 *     /holder FILE
 *
 * It may assume that the server holds a lock on the file. A server that is killed lets go of it, and the end of
 * the holder is the end of what it held.
 */
#include <fcntl.h>
#include <sys/file.h>

int main(int count, char **words) {
    int alive = count == 2 ? open(words[1], O_RDONLY) : -1;
    if (alive < 0) return 2;
    return flock(alive, LOCK_SH) < 0;
}
