/* The loopback ports of a pod: ports on its own loopback that lead to the server, although no pod finds the server.
 *
 * The server keeps connections parked here (`TOKEN tunnel`, cluster/tunnel.py). When a program connects to one of the
 * ports, the init takes a parked connection and says the port on it, a line. The server connects its own end to what
 * the port means and answers with a newline. Then a child of the init passes bytes both ways until both sides have
 * ended; the server parks the next connection meanwhile. Programs whose connection nobody answers for wait: at the
 * ports, or here for the next parked connection. The child ends with the program, as all processes here do.
 */
#include <netinet/tcp.h>
#include <sys/syscall.h>

#define DOORS 8
#define TUNNELS 16
#define BACKLOG 1024
#define UNANSWERED 5000000000LL /* nanoseconds after which a parked connection that does not answer is given up */
#define TUNNEL_PIECE 65536
#define LEAVING 60000 /* milliseconds for a program to end its side after the server's has ended */

static int doors[DOORS], door_ports[DOORS], door_count;
static struct tunnel {
    int fd;     /* parked; -1: none */
    int caller; /* the program's connection for which it was asked; -1: it is idle */
    int port;
    long long asked_at;
} tunnels[TUNNELS];
static struct caller { /* a program's connection that waits for a parked one */
    int fd, port;
} callers[TUNNELS];
static size_t waiting; /* callers */

static void close_tunnel(struct tunnel *tunnel) {
    close(tunnel->fd);
    tunnel->fd = -1;
    if (tunnel->caller >= 0 && waiting < TUNNELS) callers[waiting++] = (struct caller){tunnel->caller, tunnel->port};
    tunnel->caller = -1;
}

/* Listen at a port of the loopback; whether that went well. */
static int open_door(int port) {
    int fd = door_count < DOORS ? listen_at("127.0.0.1", port, BACKLOG) : -1; /* pods with IPv6 alone have it too */
    if (fd < 0) return 0;
    doors[door_count] = fd;
    door_ports[door_count++] = port;
    return 1;
}

/* Keep a connection of the server. Where there are too many, it is closed. */
static void park(int connection) {
    int yes = 1, idle = 10, between = 5, probes = 3;
    for (size_t i = 0; i < TUNNELS; i++) {
        if (tunnels[i].fd >= 0) continue;
        setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
        setsockopt(connection, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        setsockopt(connection, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
        setsockopt(connection, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        tunnels[i] = (struct tunnel){.fd = connection, .caller = -1};
        return;
    }
    close(connection);
}

static struct way { /* of bytes, in one direction */
    int from, to;
    size_t start, end;
    int is_over; /* nothing more comes */
    int is_shut; /* ... and all of it was passed on */
    char piece[TUNNEL_PIECE];
} ways[2];

/* Pass on what can be passed on now; whether the way is broken. */
static int move_on(struct way *way) {
    if (way->start == way->end && !way->is_over) {
        ssize_t got = recv(way->from, way->piece, TUNNEL_PIECE, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN && errno != EINTR) return 1;
        if (got == 0) way->is_over = 1;
        way->start = 0;
        way->end = got > 0 ? (size_t)got : 0;
    }
    if (way->start < way->end) {
        ssize_t done = send(way->to, way->piece + way->start, way->end - way->start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN && errno != EINTR) return 1;
        if (done > 0) way->start += (size_t)done;
    }
    if (way->is_over && way->start == way->end && !way->is_shut) {
        way->is_shut = 1;
        shutdown(way->to, SHUT_WR);
    }
    return 0;
}

static short wanted_of(int fd) {
    short events = 0;
    for (int i = 0; i < 2; i++) {
        int is_full = ways[i].start < ways[i].end;
        if (ways[i].from == fd && !is_full && !ways[i].is_over) events |= POLLIN;
        if (ways[i].to == fd && is_full) events |= POLLOUT;
    }
    return events;
}

static void close_all_others(void) {
    if (syscall(SYS_close_range, 2, ~0U, 0) == 0) return;
    for (int fd = 2; fd < 4096; fd++) close(fd); /* a kernel before 5.9 */
}

/* Pass bytes between these two until both have ended or one breaks. */
static void pass_bytes(int caller, int tunnel) {
    int low = fcntl(caller, F_DUPFD, 2), high = fcntl(tunnel, F_DUPFD, 2);
    dup2(low, 0), dup2(high, 1); /* nothing else stays open: whoever waits for the end of another is not misled */
    close_all_others();
    ways[0].from = ways[1].to = 0, ways[0].to = ways[1].from = 1;
    while (!ways[0].is_shut || !ways[1].is_shut) {
        struct pollfd wait[2] = {{.fd = 0, .events = wanted_of(0)}, {.fd = 1, .events = wanted_of(1)}};
        for (int i = 0; i < 2; i++)
            if (!wait[i].events) wait[i].fd = -1; /* else its end would be told again and again */
        if (poll(wait, 2, ways[1].is_shut ? LEAVING : -1) == 0) return;
        if (move_on(&ways[0]) || move_on(&ways[1])) return;
    }
}

static void hand_over(struct tunnel *tunnel) {
    int caller = tunnel->caller;
    pid_t child = fork();
    if (child == 0) {
        pass_bytes(caller, tunnel->fd);
        _exit(0);
    }
    tunnel->caller = -1;
    close(caller); /* where there is no room for a process, the program connects again */
    close_tunnel(tunnel);
}

static struct tunnel *idle_tunnel(void) {
    for (size_t i = 0; i < TUNNELS; i++)
        if (tunnels[i].fd >= 0 && tunnels[i].caller < 0) return &tunnels[i];
    return NULL;
}

static void ask_tunnel(struct tunnel *tunnel, int caller, int port) {
    char head[16];
    int length = snprintf(head, sizeof head, "%d\n", port);
    tunnel->caller = caller, tunnel->port = port, tunnel->asked_at = steady_now();
    if (send(tunnel->fd, head, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) != length) close_tunnel(tunnel);
}

#define TUNNEL_FDS (DOORS + TUNNELS)

/* What to wait for: parked connections, and programs where there is a parked connection for them. */
static void tunnel_wants(struct pollfd *wait) {
    struct tunnel *idle = idle_tunnel();
    for (int i = 0; i < DOORS; i++) wait[i] = (struct pollfd){.fd = i < door_count && idle ? doors[i] : -1, .events = POLLIN};
    for (size_t i = 0; i < TUNNELS; i++) wait[DOORS + i] = (struct pollfd){.fd = tunnels[i].fd, .events = POLLIN};
}

/* Milliseconds after which to look again although nothing came; -1: never. */
static int tunnel_patience(void) {
    for (size_t i = 0; i < TUNNELS; i++)
        if (tunnels[i].fd >= 0 && tunnels[i].caller >= 0) return 1000;
    return -1;
}

static void tunnel_turn(const struct pollfd *wait) {
    struct tunnel *idle;
    for (size_t i = 0; i < TUNNELS; i++) {
        struct tunnel *tunnel = &tunnels[i];
        char answer;
        if (tunnel->fd < 0) continue;
        if (wait[DOORS + i].fd == tunnel->fd && wait[DOORS + i].revents) {
            ssize_t got = recv(tunnel->fd, &answer, 1, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (got == 1 && answer == '\n' && tunnel->caller >= 0)
                hand_over(tunnel);
            else
                close_tunnel(tunnel);
        } else if (tunnel->caller >= 0 && steady_now() - tunnel->asked_at > UNANSWERED) {
            close_tunnel(tunnel);
        }
    }
    while (waiting && (idle = idle_tunnel())) {
        struct caller first = callers[0];
        memmove(callers, callers + 1, --waiting * sizeof *callers);
        ask_tunnel(idle, first.fd, first.port);
    }
    for (int i = 0; i < door_count; i++) {
        while ((idle = idle_tunnel())) {
            int caller = accept4(doors[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (caller < 0) break;
            ask_tunnel(idle, caller, door_ports[i]);
        }
    }
}
