/*
 * main.c
 *		Many calls in little time: a client with random programs, in pipelines.
 *
 * usage: flood NUMBER SEED BEGIN_US END_US FOLDER
 *
 * The programs are those of program.py, with less variety and many more calls.
 * What was sent and told goes into files of the folder, as lines for COPY;
 * prints how many calls there were.
 */
#include <stdlib.h>

#include "program.h"

static const struct
{
	void		(*run) (void);
	int			share;
}			programs[] = {
	{atomic, 30}, {lease, 10}, {work, 30}, {execute, 6}, {batch, 6},
	{timeouts, 5}, {replay, 10}, {forge, 2}, {finish_prepared, 2},
	{recover, 2}, {relay, 6}, {reconcile, 2}, {sweep, 2}
};

static FILE *
open_log(const char *folder, const char *name)
{
	char		path[1024];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s.%d", folder, name, client.number);
	file = fopen(path, "w");
	if (file == NULL)
	{
		perror(path);
		exit(1);
	}
	return file;
}

int
main(int argc, char **argv)
{
	int			n = sizeof(programs) / sizeof(*programs);
	int			all = 0;

	if (argc != 6)
		return 2;
	client.number = atoi(argv[1]);
	client.random = strtoull(argv[2], NULL, 10) * 1000 + client.number;
	begun = atoll(argv[3]);
	client.until = atoll(argv[4]);
	client.calls = open_log(argv[5], "calls");
	client.transactions = open_log(argv[5], "transactions");
	client.faults = open_log(argv[5], "faults");
	for (int i = 0; i < n; i++)
		all += programs[i].share;
	if (!connect_client(&client))
		return 1;
	while (now_us() < client.until)
	{
		int			choice = below(&client, all);

		for (int i = 0; i < n; i++)
			if ((choice -= programs[i].share) < 0)
			{
				programs[i].run();
				break;
			}
	}
	printf("%lld\n", (long long) client.made);
	return 0;
}
