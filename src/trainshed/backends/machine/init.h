/* What the inits of containers (container/init.c) and of pods (cluster/pod_init.c) have in common.
 *
 * Each of them is one program made of one source, which includes this. It never writes a record and decides nothing:
 * when a program begins and what is said of its end are the init's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static long long clock_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (long long)t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long now(void) { return clock_of(CLOCK_REALTIME); }

static ssize_t slurp(const char *path, char *into, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = read(fd, into, size - 1);
    close(fd);
    into[got < 0 ? 0 : got] = 0;
    return got;
}

/* A line of a record: the init was begun. */
static void name_start(char *line, size_t size) {
    char boot[64] = "-";
    if (slurp("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
    snprintf(line, size, "init %s %lld\n", boot, now());
}

/* A line of a record: how a program ended. */
static void name_end(char *line, size_t size, const char *how, int status) {
    if (WIFSIGNALED(status))
        snprintf(line, size, "%ssignal %d %lld\n", how, WTERMSIG(status), now());
    else
        snprintf(line, size, "%sexit %d %lld\n", how, WEXITSTATUS(status), now());
}

/* The status by which a shell would tell that end. */
static int shell_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* What the kernel counted here under that word: in a file of version 2 of cgroups, else of version 1. */
static long counted(const char *word, const char *const files[2]) {
    char content[1024], *place;
    for (size_t i = 0; i < 2; i++)
        if (slurp(files[i], content, sizeof content) > 0 && (place = strstr(content, word)))
            return atol(place + strlen(word));
    return -1;
}

/* Lines of a record: what the kernel killed and refused here. */
static void name_counts(char *lines, size_t size) {
    static const char *const kills[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    static const char *const refusals[] = {"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"};
    long oom = counted("oom_kill ", kills), refused = counted("max ", refusals);
    size_t length = 0;
    *lines = 0;
    if (oom >= 0) length = (size_t)snprintf(lines, size, "oom %ld\n", oom);
    if (refused > 0) snprintf(lines + length, size - length, "refused %ld\n", refused);
}

/* Become the program; or write why that cannot be done to the standard error, call `tell` with the error, and end. */
static void become(char **words, void (*tell)(int)) {
    sigset_t none;
    int error;
    setsid();
    prctl(PR_SET_DUMPABLE, 1);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!getenv("PATH")) setenv("PATH", PATH, 1);
    execvp(words[0], words);
    if (errno == ENOENT && (strcmp(words[0], "python") == 0 || strcmp(words[0], "python3") == 0)) {
        /* Images have one of the two names: either means their interpreter, as it does for processes. */
        execvp(strcmp(words[0], "python") ? "python" : "python3", words);
        errno = ENOENT;
    }
    error = errno;
    dprintf(2, "trainshed: cannot run '%s': %s\n", words[0], strerror(error));
    tell(error);
    _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

/* Kill all that the program left: nothing of it lives once its end is written. */
static void clear(void) {
    do kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0);
}
