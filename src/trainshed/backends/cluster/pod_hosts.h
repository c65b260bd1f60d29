/* The file of host names of a pod whose replicas have names of other tools: the server says which, before it says go.
 *
 * Kubernetes writes such a file itself and lets only root change it. So these pods have one of their own, which an init
 * container of the same user has made: `init --touch PATH`. Names that are told again replace what was told before: a
 * replica that was started again has another address.
 */
#ifndef HOSTS /* tests have another */
#define HOSTS "/etc/hosts"
#endif
#define OWN_HOSTS "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

static char *hosts; /* lines of an address and a name */
static size_t hosts_length, hosts_room;

static int touch(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 || write(fd, OWN_HOSTS, strlen(OWN_HOSTS)) < 0;
}

static void forget_host(const char *name) {
    size_t length = strlen(name);
    for (char *row = hosts, *end; row && row < hosts + hosts_length; row = end) {
        char *word = memchr(row, '\t', hosts_length - (size_t)(row - hosts));
        end = (char *)memchr(row, '\n', hosts_length - (size_t)(row - hosts)) + 1;
        if (!word || (size_t)(end - word) != length + 2 || memcmp(word + 1, name, length) != 0) continue;
        memmove(row, end, hosts_length - (size_t)(end - hosts));
        hosts_length -= (size_t)(end - row);
        return;
    }
}

/* "ADDRESS NAME" */
static void take_host(const char *words_of_order) {
    char address[64], name[300];
    if (sscanf(words_of_order, "%63s %299s", address, name) != 2) return;
    size_t size = strlen(address) + strlen(name) + 2;
    forget_host(name);
    if (hosts_length + size >= hosts_room) {
        char *larger = realloc(hosts, hosts_room = 2 * hosts_room + size + 1024);
        if (!larger) return;
        hosts = larger;
    }
    hosts_length += (size_t)snprintf(hosts + hosts_length, hosts_room - hosts_length, "%s\t%s\n", address, name);
}

/* In place: what is mounted alone cannot be replaced. */
static void write_hosts(void) {
    int fd = hosts_length ? open(HOSTS, O_WRONLY | O_CLOEXEC) : -1;
    size_t own = strlen(OWN_HOSTS);
    if (fd < 0) return;
    if (pwrite(fd, OWN_HOSTS, own, 0) == (ssize_t)own && pwrite(fd, hosts, hosts_length, (off_t)own) == (ssize_t)hosts_length &&
        ftruncate(fd, (off_t)(own + hosts_length)) < 0)
        dprintf(2, "trainshed: %s keeps names of before\n", HOSTS);
    close(fd);
}
