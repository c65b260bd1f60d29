/* The only program of the network anchor, a container that stays in networks: it waits until its server ends.
 *
 *     /anchor FILE
 *
 * The server has a lock on the file. The kernel releases it also when the server is killed; then this program
 * ends, and its container leaves all networks.
 */
#include <fcntl.h>
#include <sys/file.h>

int main(int count, char **words) {
    int alive = count == 2 ? open(words[1], O_RDONLY) : -1;
    if (alive < 0) return 2;
    return flock(alive, LOCK_SH) < 0;
}
