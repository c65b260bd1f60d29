/* Addresses of both kinds: those of IPv4, and those of IPv6, which alone some clusters have. For our programs.
 *
 * Whoever listens everywhere listens at ::, where callers of both kinds arrive, or at 0.0.0.0 on a kernel without IPv6.
 */
#ifndef ADDRESS_H
#define ADDRESS_H
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } place;
    socklen_t size;
};

/* Whether the text is an address, which then is in `address` with that port. */
static int read_address(const char *text, int port, struct address *address) {
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, &address->place.four.sin_addr) == 1) {
        address->place.four.sin_family = AF_INET;
        address->place.four.sin_port = htons((unsigned short)port);
        address->size = sizeof address->place.four;
        return 1;
    }
    if (inet_pton(AF_INET6, text, &address->place.six.sin6_addr) != 1) return 0;
    address->place.six.sin6_family = AF_INET6;
    address->place.six.sin6_port = htons((unsigned short)port);
    address->size = sizeof address->place.six;
    return 1;
}

/* A socket of the address's kind; `kind` as for socket(2). */
static int open_socket(const struct address *address, int kind) {
    return socket(address->place.any.sa_family, kind | SOCK_CLOEXEC, 0);
}

/* Listen there; -1, with errno, where that cannot be. */
static int listen_at(const char *text, int port, int backlog) {
    struct address address;
    int yes = 1, no = 0, fd = -1;
    errno = EINVAL;
    if (read_address(text, port, &address)) fd = open_socket(&address, SOCK_STREAM | SOCK_NONBLOCK);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (address.place.any.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        if (bind(fd, &address.place.any, address.size) == 0 && listen(fd, backlog) == 0) return fd;
        int error = errno;
        close(fd);
        errno = error;
    }
    return strcmp(text, "::") == 0 ? listen_at("0.0.0.0", port, backlog) : -1;
}
#endif
