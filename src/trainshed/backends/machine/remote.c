/* What starts programs in other replicas (remote.h), as a program of its own: for replicas that are processes. */
#define _GNU_SOURCE
#include "remote.h"

int main(int count, char **words) { return remote_main(count, words); }
