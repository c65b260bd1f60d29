/* Whether a pod is kept apart from the network, looked at before its program begins.
 *
 * No API tells whether a cluster enforces its network policies, and where it does it takes a moment. Every pod knows
 * the address of the Kubernetes API, which a pod of an isolated job must not reach: it begins once it does not.
 */
#define PROBE_AGAIN 200000000LL    /* nanoseconds between two looks */
#define UNREACHED 2000000000LL     /* nanoseconds without an answer after which nobody is reached */
#ifndef EXPOSED_FOR                /* tests wait less */
#define EXPOSED_FOR 30000000000LL  /* nanoseconds after which no policy will be enforced any more */
#endif

static int probe = -1, is_apart;
static long long probed_at, probed_since;

static int open_probe(void) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    struct address server;
    if (!host || !read_address(host, port ? atoi(port) : 443, &server)) return EAFNOSUPPORT;
    probe = open_socket(&server, SOCK_STREAM | SOCK_NONBLOCK);
    return connect(probe, &server.place.any, server.size) < 0 ? errno : 0;
}

/* What became of the probe: an error, 0 where it has reached somebody, EINPROGRESS where that is not known yet. */
static int look_at_probe(void) {
    struct pollfd wait = {.fd = probe, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (probe < 0) {
        if (steady_now() - probed_at < PROBE_AGAIN) return EINPROGRESS;
        probed_at = steady_now();
        return open_probe();
    }
    if (poll(&wait, 1, 0) == 0) return steady_now() - probed_at > UNREACHED ? ETIMEDOUT : EINPROGRESS;
    getsockopt(probe, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

/* 1: it is kept apart; 0: not known yet; -1: it is not, and will not be. */
static int look_apart(void) {
    if (is_apart) return 1;
    if (!probed_since) probed_since = steady_now();
    int error = look_at_probe();
    if (error == EINPROGRESS) return 0;
    if (probe >= 0) close(probe);
    probe = -1;
    is_apart = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EACCES || error == EPERM;
    return is_apart ? 1 : steady_now() - probed_since > EXPOSED_FOR ? -1 : 0;
}
