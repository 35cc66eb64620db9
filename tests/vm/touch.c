/* touch SIZE_MIB SECONDS - write to a buffer, page after page, until the time is over. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 16) << 20;
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 5);
	volatile char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("touch: mmap");
		return 1;
	}
	while (time(NULL) < end)
		for (size_t i = 0; i < size; i += 4096)
			p[i]++;
	return 0;
}
