/* The keeper: the smallest parent that can hold a program's exit status while no server runs.
 *
 *     keeper [--hosts FILE] [--view VIEW | --lazy VIEW TRIGGER]
 *            [--adopt PID LATCH | [--hold] [--join OLD]... [--user UID GID[,GROUP...]]]
 *            RUN WORK GROUP PROGRAM [ARG...]
 *     keeper --place VIEW
 *     keeper --try VIEW | --try-lazy VIEW | --try-hosts FILE
 *
 * RUN is the run's directory, WORK the program's working directory, GROUP a cgroup v2 directory or "-", OLD one of
 * a hierarchy of cgroup v1, by which memory or processes are limited.
 * The environment, and the files open as 0, 1 and 2, are the program's. With --adopt the program is there
 * already, a child that becomes it once a byte is written to the descriptor LATCH (warm/interpreter.py). With --view
 * the program finds VIEW as /gcs and, where the machine has nothing there, as /s3, in a mount namespace that it
 * shares with all who have the same VIEW, and that goes with the last of them. With --lazy VIEW need not be there:
 * /gcs is an autofs trigger, and the first process that opens it waits while the keeper asks the server for VIEW and
 * mounts it (attend). TRIGGER is the read end of the trigger's pipe for an adopted program, which has mounted the
 * trigger itself, else 0. With --hosts the program finds FILE as /etc/hosts, in the same namespace. --place only
 * mounts VIEW for its parent, in the parent's mount namespace. --try, --try-lazy and --try-hosts only tell whether
 * that can be done here (views.py, google_hosts.py).
 *
 * With --user the program is that user's, without any right of the keeper's: other groups, capabilities, or a way to
 * gain some by exec. The keeper itself stays who it is.
 *
 * With --hold the mounts and the cgroup of a program that ends badly, and was not asked to end, stay for a look: a
 * sitter stays in them until SIGTERM, then ends as the program did.
 *
 * It may assume that RUN holds a file `ready` of spaces. Whoever renames it to `record` owns the run, so
 * that of two keepers one leaves without a trace. It overwrites the spaces in place, a line each, which
 * works on a full disk:
 *
 *     keeper PID START BOOT NANOSECONDS      itself; START is field 22 of /proc/PID/stat
 *     program PID START
 *     unstarted ERRNO                        it cannot be run; by its child
 *     held exit CODE NANOSECONDS             or: held signal NUMBER NANOSECONDS; by the sitter
 *     exit CODE NANOSECONDS                  or: signal NUMBER NANOSECONDS
 *
 * It never writes the last line before everything that descends from the program is gone, never reads
 * or writes the program's output, and knows nothing of jobs. keeper.sh does the same without a compiler.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#define SYS_CLONE_MOUNT 428 /* open_tree and move_mount, on every architecture */
#define SYS_PLACE_MOUNT 429
#define TRIGGER_READY _IO(0x93, 0x60) /* of autofs */
#define TRIGGER_FAIL _IO(0x93, 0x61)
#define STOP_ROUNDS 32
#define HIERARCHIES 2
#define MOST_GROUPS 256
#define NEW_KEYRING 1 /* KEYCTL_JOIN_SESSION_KEYRING */

struct process {
    pid_t pid, parent;
    char state;
    int ours;
};

static int record = -1, trigger = -1;
static const char *lazy; /* the view that is mounted when somebody looks for it */

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void nap(long milliseconds) {
    struct timespec t = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

static ssize_t slurp(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got < 0 ? 0 : got] = 0;
    return got;
}

/* A file system that copies on write may refuse even these bytes when full: wait for room, the end of a
 * run must not be lost. */
static void note(const char *line) {
    size_t length = strlen(line);
    while (write(record, line, length) < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EINTR)) nap(100);
}

/* Parent, state and start of a process; the command in parentheses may hold anything, so begin after it. */
static int look(pid_t pid, struct process *process, unsigned long long *start) {
    char path[64], text[1024], *rest;
    int parent;
    unsigned long long begun;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (slurp(path, text, sizeof text) <= 0 || !(rest = strrchr(text, ')'))) return -1;
    if (sscanf(rest + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &process->state, &parent, &begun) != 3)
        return -1;
    process->pid = pid;
    process->parent = parent;
    process->ours = 0;
    if (start) *start = begun;
    return 0;
}

/* All that runs on this machine; with `ours` set on what descends from this process. */
static size_t survey(struct process **table) {
    static struct process *all;
    static size_t room;
    size_t count = 0, i, j;
    struct dirent *entry;
    pid_t me = getpid();
    int found = 1;
    DIR *proc = opendir("/proc");
    if (!proc) return 0;
    while ((entry = readdir(proc))) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 0) continue;
        if (count == room) {
            struct process *more = realloc(all, (room + 256) * sizeof *all);
            if (!more) break;
            all = more;
            room += 256;
        }
        if (look(pid, &all[count], NULL) == 0) count++;
    }
    closedir(proc);
    while (found) {
        found = 0;
        for (i = 0; i < count; i++) {
            if (all[i].ours || all[i].pid == me) continue;
            int ours = all[i].parent == me;
            for (j = 0; !ours && j < count; j++) ours = all[j].ours && all[j].pid == all[i].parent;
            if (ours) all[i].ours = found = 1;
        }
    }
    *table = all;
    return count;
}

/* Stop first, until a look finds nothing that still runs: what forks faster than it is killed would win. */
static void sweep(void) {
    struct process *all = NULL;
    size_t count = 0, i;
    int round, moving = 1;
    setpriority(PRIO_PROCESS, 0, -20); /* where allowed: they may be hundreds, and busy */
    for (round = 0; moving && round < STOP_ROUNDS; round++) {
        moving = 0;
        count = survey(&all);
        for (i = 0; i < count; i++)
            if (all[i].ours && !strchr("TtZX", all[i].state)) {
                moving = 1;
                kill(all[i].pid, SIGSTOP);
            }
    }
    for (i = 0; i < count; i++)
        if (all[i].ours) kill(all[i].pid, SIGKILL);
}

static void put(const char *group, const char *file, const char *text) {
    char path[4096];
    int fd;
    snprintf(path, sizeof path, "%s/%s", group, file);
    if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0) return;
    if (write(fd, text, strlen(text)) < 0) { /* the other nets remain */ }
    close(fd);
}

/* Born inside the cgroup where the kernel can: moving a process later waits for a grace period of RCU. */
static pid_t split(const char *group) {
#ifdef SYS_clone3
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
    } how;
    int fd = group ? open(group, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        memset(&how, 0, sizeof how);
        how.flags = CLONE_INTO_CGROUP;
        how.exit_signal = SIGCHLD;
        how.cgroup = (uint64_t)fd;
        pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
        if (pid > 0) close(fd);
        if (pid >= 0) return pid;
        close(fd);
    }
#endif
    pid_t pid = fork();
    if (pid == 0 && group) put(group, "cgroup.procs", "0");
    return pid;
}

static void refuse(const char *what, const char *name, int code) {
    char line[64];
    snprintf(line, sizeof line, "unstarted %d\n", errno);
    dprintf(2, "trainshed: %s '%s': %s\n", what, name, strerror(errno));
    note(line);
    _exit(code);
}

static int space(int pid, const char *kind) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Copy the mount at /gcs of another mount namespace to ours. */
static int borrow(int theirs) {
    int copy = -1, ours = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (setns(theirs, CLONE_NEWNS) == 0) copy = (int)syscall(SYS_CLONE_MOUNT, AT_FDCWD, "/gcs", 1 | O_CLOEXEC);
    if (setns(ours, CLONE_NEWNS) < 0) return -1;
    return (int)syscall(SYS_PLACE_MOUNT, copy, "", AT_FDCWD, "/gcs", 4);
}

/* Enter the mount namespace of a process that has the same view or, with `borrowing`, copy its mount. Known by pid
 * and start time: a pid is given out again. */
static int join(FILE *holders, int borrowing) {
    struct process other;
    unsigned long long start, begun;
    int pid, joined = -1;
    while (joined < 0 && fscanf(holders, "%d %llu", &pid, &start) == 2) {
        int user = space(pid, "user"), mounts = space(pid, "mnt");
        /* Looked at after they are open: they are then surely that process's. */
        if (mounts >= 0 && look(pid, &other, &begun) == 0 && begun == start && !strchr("ZX", other.state)) {
            joined = borrowing ? borrow(mounts) : setns(mounts, CLONE_NEWNS);
            if (!borrowing && joined < 0 && user >= 0 && setns(user, CLONE_NEWUSER) == 0) joined = setns(mounts, CLONE_NEWNS);
        }
        close(user);
        close(mounts);
    }
    return joined;
}

/* Mounts of our own: as root, or as the root of a user namespace in which we are still who we were. */
static int own_mounts(const char **also) {
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    *also = "redirect_dir=off";
    if (unshare(CLONE_NEWNS) == 0) return 0;
    if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) return -1;
    *also = "userxattr,redirect_dir=nofollow";
    put("/proc/self", "setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    put("/proc/self", "uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    put("/proc/self", "gid_map", map);
    return 0;
}

/* Bind /gcs to a second place as well, unless the machine has something there. */
static void repeat(const char *place) {
    struct dirent *entry;
    int taken = 0;
    DIR *there;
    if ((mkdir(place, 0755) < 0 && errno != EEXIST) || !(there = opendir(place))) return;
    while ((entry = readdir(there))) taken |= strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(there);
    if (!taken) mount("/gcs", place, NULL, MS_BIND, NULL);
}

static const char *prepare(const char **also) {
    if (mkdir("/gcs", 0755) < 0 && errno != EEXIST) return "the folder /gcs cannot be made";
    if (own_mounts(also) < 0) return "no mount namespace can be made";
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return "mounts cannot be made private";
    return NULL;
}

/* Mount an overlay over the snapshot: what programs write goes to the job's own layer. Where there can be no overlay
 * the view holds copies, which programs write to directly. */
static const char *lay(int prepared) {
    char options[160];
    const char *failed, *also = "redirect_dir=off";
    if (!prepared && (failed = prepare(&also))) return failed;
    if (access("plain", F_OK) == 0) {
        if (mount("plain", "/gcs", NULL, MS_BIND, NULL) < 0) return "copies cannot be mounted at /gcs";
        repeat("/s3");
        return NULL;
    }
    snprintf(options, sizeof options, "lowerdir=lower,upperdir=upper,workdir=work,index=off,metacopy=off,%s", also);
    if (mount("trainshed", "/gcs", "overlay", MS_NODEV | MS_NOSUID, options) < 0)
        return "an overlay cannot be mounted at /gcs";
    repeat("/s3");
    return NULL;
}

/* Mount a trigger at /gcs: the kernel tells the keeper through the pipe `end` when a process opens it. Processes in
 * the keeper's own group open it without that. */
static const char *set_trigger(int end, pid_t group) {
    char options[96];
    const char *failed, *also;
    if ((failed = prepare(&also))) return failed;
    snprintf(options, sizeof options, "fd=%d,pgrp=%d,minproto=5,maxproto=5,direct", end, (int)group);
    if (mount("trainshed", "/gcs", "autofs", MS_NODEV | MS_NOSUID, options) < 0) return "no trigger can be mounted at /gcs";
    close(end);
    return NULL;
}

/* Mount the view for `holder`: this process, or another one in whose mount namespace this one is. NULL, or what could
 * not be done; errno says why. Changes the working directory. */
static const char *enter(const char *view, pid_t holder) {
    const char *failed = NULL;
    struct process self;
    unsigned long long start = 0;
    FILE *holders;
    int lock;
    if (chdir(view) < 0) return "its folder cannot be entered";
    lock = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0) return "its lock cannot be had";
    if (!(holders = fopen("holders", "a+e"))) return "its holders cannot be read";
    rewind(holders);
    if (join(holders, holder != getpid()) < 0) /* looking at other mounts has led to their root */
        failed = chdir(view) < 0 ? "its folder cannot be entered" : lay(holder != getpid());
    else if (holder != getpid())
        repeat("/s3");
    if (!failed) {
        look(holder, &self, &start);
        fprintf(holders, "%d %llu\n", (int)holder, start);
        if (fflush(holders) != 0) failed = "its holders cannot be written down";
    }
    fclose(holders);
    return failed; /* the lock is held until the program begins: before, nobody may look into its namespaces */
}

/* Close all descriptors but 0, 1, 2 and these two. */
static void drop(int kept, int also) {
#ifdef SYS_close_range
    int stay[2] = {kept < also ? kept : also, kept < also ? also : kept}, from = 3, i;
    for (i = 0; i < 2; i++) {
        if (stay[i] > from) syscall(SYS_close_range, (unsigned)from, (unsigned)stay[i] - 1, 0U);
        if (stay[i] >= from) from = stay[i] + 1;
    }
    syscall(SYS_close_range, (unsigned)from, ~0U, 0U);
#else
    (void)kept;
    (void)also;
#endif
}

/* Ask the server for the view, by a file beside it and a line in the pipe `asked` of its home, and wait until the
 * view is there. A server that starts finds the file. -1 where it cannot be asked. */
static int request_view(void) {
    char path[4096], *end;
    int wanted, requests;
    if (access(lazy, F_OK) == 0) return 0;
    snprintf(path, sizeof path, "%s", lazy);
    if ((end = strrchr(path, '/'))) *end = 0;
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chdir(path) < 0) return -1;
    if ((wanted = open("wanted", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0) return -1;
    close(wanted);
    snprintf(path, sizeof path, "%s\n", lazy);
    if ((requests = open("../../../asked", O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0) {
        if (write(requests, path, strlen(path)) < 0) { /* the file remains */ }
        close(requests);
    }
    while (access(lazy, F_OK) < 0) nap(2);
    return 0;
}

/* In a child of the keeper: mount the view where the program is, and let those go on who opened /gcs and wait.
 * Where there can be no view they go on with an error: nobody may wait forever. */
static void answer(pid_t program, unsigned token, pid_t keeper) {
    int place, failed, theirs;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) _exit(1);
    theirs = space(program, "mnt");
    failed = request_view() < 0;
    if (setns(theirs, CLONE_NEWNS) < 0 || (place = open("/gcs", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) _exit(1);
    if (!failed) failed = enter(lazy, program) != NULL;
    ioctl(place, failed ? TRIGGER_FAIL : TRIGGER_READY, (unsigned long)token);
    _exit(failed);
}

/* Read one request of the trigger and answer it in a child. */
static void attend(pid_t program) {
    char packet[512];
    unsigned token;
    pid_t child, keeper = getpid();
    if (read(trigger, packet, sizeof packet) < 12) { /* the mount is gone: nobody can open it now */
        close(trigger);
        trigger = -1;
        return;
    }
    memcpy(&token, packet + 8, sizeof token);
    while ((child = fork()) < 0) nap(50);
    if (child == 0) answer(program, token, keeper);
}

/* The status of the program once it has ended. Meanwhile reap whatever else ends, and answer the trigger. */
static int await_program(pid_t program) {
    int status = 0, ended = -1;
    pid_t gone;
    sigset_t children;
    struct pollfd events[2];
    if (trigger >= 0) { /* before the first look at who has ended: an end after it is then seen */
        sigemptyset(&children);
        sigaddset(&children, SIGCHLD);
        sigprocmask(SIG_BLOCK, &children, NULL);
        ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    for (;;) {
        gone = waitpid(-1, &status, trigger >= 0 ? WNOHANG : 0);
        if (gone == program && (WIFEXITED(status) || WIFSIGNALED(status))) break;
        if (gone < 0 && errno != EINTR) break;
        if (gone != 0) continue;
        events[0] = (struct pollfd){ended, POLLIN, 0};
        events[1] = (struct pollfd){trigger, POLLIN, 0};
        if (poll(events, 2, ended < 0 ? 50 : -1) < 0) continue;
        if (events[0].revents) {
            struct signalfd_siginfo info;
            if (read(ended, &info, sizeof info) < 0) { /* waitpid tells who */ }
        }
        if (events[1].revents) attend(program);
    }
    if (ended >= 0) close(ended);
    if (trigger >= 0) close(trigger);
    trigger = -1;
    return status;
}

static void note_end(const char *how, int status) {
    char line[256];
    if (WIFSIGNALED(status))
        snprintf(line, sizeof line, "%ssignal %d %lld\n", how, WTERMSIG(status), now());
    else
        snprintf(line, sizeof line, "%sexit %d %lld\n", how, WEXITSTATUS(status), now());
    note(line);
}

static int hold(pid_t program, const char *group) {
    int status = await_program(program), other;
    pid_t gone;
    long pause = 1;
    for (;;) {
        while ((gone = waitpid(-1, &other, WNOHANG)) > 0) {}
        if (gone < 0 && errno == ECHILD) return status; /* a subreaper without children has no descendants */
        if (group) put(group, "cgroup.kill", "1");
        sweep();
        nap(pause);
        if (pause < 64) pause *= 2;
    }
}

/* In the child: fork again. The new child returns and becomes the program; the parent is its sitter and never
 * returns. All signals are blocked: SIGTERM stays pending until the sitter waits for it. */
static void leave_a_sitter(void) {
    pid_t program, sitter = getpid();
    struct rlimit nothing = {0, 0};
    sigset_t asked;
    int status, number;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    while ((program = fork()) < 0) nap(50);
    if (program == 0) {
        setsid(); /* a program that signals its own group must not reach its sitter */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != sitter) _exit(127);
        return;
    }
    for (number = 0; number < 3; number++) close(number);
    prctl(PR_SET_DUMPABLE, 1); /* who shares its view looks into its namespaces, once the lock on it is dropped */
    drop(record, 0);
    status = hold(program, NULL);
    sigpending(&asked);
    if (status && !sigismember(&asked, SIGTERM)) {
        note_end("held ", status);
        sigemptyset(&asked);
        sigaddset(&asked, SIGTERM);
        sigwait(&asked, &number);
    }
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    setrlimit(RLIMIT_CORE, &nothing);
    sigemptyset(&asked);
    sigprocmask(SIG_SETMASK, &asked, NULL);
    for (;;) kill(sitter, WTERMSIG(status));
}

/* Make FILE /etc/hosts in the program's mount namespace, which is its own already if `separate`. NULL, or what could
 * not be done. As root only: a user namespace would change who the program is. */
static const char *place_hosts(const char *file, int separate) {
    struct stat machine, other;
    if (stat(file, &other) == 0 && stat("/etc/hosts", &machine) == 0 && machine.st_dev == other.st_dev &&
        machine.st_ino == other.st_ino)
        return NULL; /* it has joined the namespace of another replica */
    if (!separate && unshare(CLONE_NEWNS) < 0) return "no mount namespace can be made";
    if (!separate && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return "mounts cannot be made private";
    return mount(file, "/etc/hosts", NULL, MS_BIND, NULL) < 0 ? "/etc/hosts cannot be another file" : NULL;
}

/* Be that user for good, with these groups (the first is the main one) and no right of root's. 0, or -1. */
static int drop_rights(const char *user, const char *groups) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    gid_t list[MOST_GROUPS];
    uid_t uid = (uid_t)strtoul(user, NULL, 10);
    int count = 0, right;
    pid_t parent = getppid();
    char *next = (char *)groups;
    do list[count++] = (gid_t)strtoul(next, &next, 10);
    while (*next++ == ',' && count < MOST_GROUPS);
    errno = EINVAL;
    if (uid == 0 || list[0] == 0) return -1;
    memset(none, 0, sizeof none);
    for (right = 0; prctl(PR_CAPBSET_READ, right, 0, 0, 0) >= 0; right++) prctl(PR_CAPBSET_DROP, right, 0, 0, 0);
    if (setgroups((size_t)count - 1, list + 1) < 0) return -1;
    if (setresgid(list[0], list[0], list[0]) < 0 || setresuid(uid, uid, uid) < 0) return -1;
    if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
    syscall(SYS_keyctl, NEW_KEYRING, NULL); /* where there are keys: it has the keeper's otherwise */
    prctl(PR_SET_PDEATHSIG, SIGKILL);       /* becoming another user has cleared it */
    if (getppid() != parent) _exit(127);
    return 0;
}

/* In the child. Signals are still blocked: one sent meanwhile arrives with its default action, not ignored. */
static void become(const char *work, const char *view, const char **joined, const char *hosts, int end, int held,
                   char **user, char **program, pid_t keeper) {
    const char *failed;
    static const char fallback[64]; /* the kernel's struct sigaction, all zero: SIG_DFL */
    int number;
    sigset_t none;
    /* Past the C library, which keeps two signals to itself and, in posix_spawn, leaves them ignored. */
    for (number = 1; number <= 64; number++) syscall(SYS_rt_sigaction, number, fallback, NULL, 8);
    setsid();
    trigger = -1; /* the keeper's */
    /* The one thread there is moves itself: nobody has to wait for a grace period of RCU then. */
    for (; *joined; joined++) put(*joined, "tasks", "0");
    if (view && (failed = end ? set_trigger(end, keeper) : enter(view, getpid()))) refuse("no /gcs:", failed, 126);
    if (hosts && (failed = place_hosts(hosts, view != NULL))) refuse("no redirected hosts:", failed, 126);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* without a keeper nobody enforces its limits */
    if (getppid() != keeper) _exit(127);
    if (!user && chdir(work) < 0) refuse("cannot enter", work, 126);
    if (held) leave_a_sitter();
    if (user && drop_rights(user[0], user[1]) < 0) refuse("cannot become user", user[0], 126);
    if (user && chdir(work) < 0) refuse("cannot enter", work, 126); /* with no more rights than it has */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(program[0], program);
    refuse("cannot run", program[0], errno == ENOENT ? 127 : 126);
}

static int claim(const char *run) {
    char ready[4096], path[4096];
    snprintf(ready, sizeof ready, "%s/ready", run);
    snprintf(path, sizeof path, "%s/record", run);
    if (rename(ready, path) < 0) return -1;
    return record = open(path, O_WRONLY | O_CLOEXEC);
}

/* Let the fork of a warm interpreter become the program. It enters the cgroup itself. */
static void release(int latch) {
    if (write(latch, "+", 1) < 0) { /* it is dead: its status says how */ }
    close(latch);
}

static void introduce(void) {
    char boot[64] = "-", line[256];
    struct process self;
    unsigned long long start = 0;
    if (slurp("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
    look(getpid(), &self, &start);
    snprintf(line, sizeof line, "keeper %d %llu %s %lld\n", (int)getpid(), start, boot, now());
    note(line);
}

int main(int count, char **words) {
    char line[256];
    struct process self;
    unsigned long long start = 0;
    sigset_t every;
    int number, latch = 0, held = 0, ends[2] = {0, 0};
    pid_t program = 0, keeper = getpid();
    char **user = NULL;
    const char *group, *view = NULL, *hosts = NULL, *failed, *joined[HIERARCHIES + 1] = {NULL};
    if (count == 3 && (!strncmp(words[1], "--try", 5) || !strcmp(words[1], "--place"))) {
        if (!strcmp(words[1], "--try-lazy") && pipe(ends) < 0) return 1;
        failed = ends[1]                              ? set_trigger(ends[1], getpgrp())
                 : !strcmp(words[1], "--try-hosts") ? place_hosts(words[2], 0)
                 : !strcmp(words[1], "--place")     ? enter(words[2], getppid())
                                                      : enter(words[2], getpid());
        if (!failed) return 0;
        dprintf(2, words[1][2] == 'p' ? "trainshed: no /gcs: '%s': %s\n" : "%s: %s", failed, strerror(errno));
        return 1;
    }
    if (count > 2 && !strcmp(words[1], "--hosts")) {
        hosts = words[2];
        words += 2;
        count -= 2;
    }
    if (count > 2 && !strcmp(words[1], "--view")) {
        view = words[2];
        words += 2;
        count -= 2;
    }
    if (count > 3 && !strcmp(words[1], "--lazy")) {
        lazy = view = words[2];
        trigger = atoi(words[3]);
        words += 3;
        count -= 3;
    }
    if (count > 1 && !strcmp(words[1], "--hold")) {
        held = 1;
        words++;
        count--;
    }
    for (number = 0; number < HIERARCHIES && count > 2 && !strcmp(words[1], "--join"); number++) {
        joined[number] = words[2];
        words += 2;
        count -= 2;
    }
    if (count > 3 && !strcmp(words[1], "--user")) {
        user = words + 2;
        words += 3;
        count -= 3;
    }
    if (count > 3 && !strcmp(words[1], "--adopt")) {
        program = atoi(words[2]);
        latch = atoi(words[3]);
        words += 3;
        count -= 3;
    }
    if (count < 5) return 2;
    group = strcmp(words[3], "-") ? words[3] : NULL;
    drop(latch, trigger);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (number = 1; number < NSIG; number++)
        if (number != SIGCHLD) signal(number, SIG_IGN); /* an ignored SIGCHLD would throw statuses away */
    signal(SIGCHLD, SIG_DFL);
    if (claim(words[1]) < 0) return 0;
    if (chdir("/") < 0) return 0; /* holds no mount of the server's */
    introduce();
    if (lazy && !trigger && pipe2(ends, O_CLOEXEC) == 0) trigger = ends[0];
    if (lazy && trigger) fcntl(trigger, F_SETFD, FD_CLOEXEC);
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, NULL);
    if (latch)
        release(latch);
    else
        while ((program = split(group)) < 0) nap(50); /* no room for a process now: it is asked for again */
    if (program == 0) become(words[2], view, joined, hosts, ends[1], held, user, words + 4, keeper);
    if (ends[1]) close(ends[1]);
    sigemptyset(&every);
    sigprocmask(SIG_SETMASK, &every, NULL);
    number = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(number, 1);
    dup2(number, 2);
    look(program, &self, &start);
    snprintf(line, sizeof line, "program %d %llu\n", (int)program, start);
    note(line);
    note_end("", hold(program, group));
    return 0;
}
