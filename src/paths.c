/*-------------------------------------------------------------------------
 *
 * paths.c
 *		The parts of a request that a fingerprint leaves out, as JSON
 *		Pointers (RFC 6901).
 *
 * Pure.  A set of paths is a bit mask, so that following them down a value
 * costs no memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "idempotency.h"
#include "utils/builtins.h"

typedef struct Path
{
	int			nsteps;
	char	  **steps;
	int		   *lens;
} Path;

struct IdemPaths
{
	int			n;
	Path		path[FLEXIBLE_ARRAY_MEMBER];
};

static void
refuse_path(const char *path, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid ignore path \"%s\"", path),
			 errdetail("%s", detail),
			 errhint("Use JSON Pointers, for example \"/meta/trace_id\" or \"/items/0/at\".")));
}

/*
 * RFC 6901: steps are separated by "/", "~1" stands for "/", "~0" for "~".
 */
static void
parse_path(const char *pointer, Path *path)
{
	char	   *out = pstrdup(pointer);
	int			nslashes = 0;

	if (pointer[0] == '\0')
		refuse_path(pointer, "The empty pointer names the whole request.");
	if (pointer[0] != '/')
		refuse_path(pointer, "It does not begin with \"/\".");
	for (const char *p = pointer; *p; p++)
		nslashes += (*p == '/');

	path->nsteps = 0;
	path->steps = palloc(nslashes * sizeof(char *));
	path->lens = palloc(nslashes * sizeof(int));
	for (const char *p = pointer; *p; p++)
	{
		if (*p == '/')
		{
			path->steps[path->nsteps] = out;
			path->lens[path->nsteps++] = 0;
			continue;
		}
		if (*p == '~' && p[1] != '0' && p[1] != '1')
			refuse_path(pointer, "\"~\" must be followed by 0 or 1.");
		*out++ = *p != '~' ? *p : *++p == '1' ? '/' : '~';
		path->lens[path->nsteps - 1]++;
	}
}

/*
 * The paths of a text[], each checked.
 */
IdemPaths *
paths_parse(ArrayType *array)
{
	Datum	   *elems;
	bool	   *nulls;
	int			n;
	IdemPaths  *paths;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &elems, &nulls, &n);
	if (ARR_NDIM(array) > 1 || n > IDEM_PATHS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid ignore paths"),
				 errdetail("They must be an array of one dimension and at most %d elements.",
						   IDEM_PATHS_MAX),
				 errhint("Ignore a common parent instead.")));

	paths = palloc(offsetof(IdemPaths, path) + n * sizeof(Path));
	paths->n = n;
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("ignore path must not be NULL"),
					 errdetail("Element %d of the ignore paths is NULL.",
							   i + 1),
					 errhint("Leave the element out.")));
		parse_path(TextDatumGetCString(elems[i]), &paths->path[i]);
	}
	return paths;
}

/*
 * The set that leads to the root of a request: all of them.
 */
uint64
paths_all(const IdemPaths *paths)
{
	/* a shift by 64 is undefined */
	return paths->n == 0 ? 0 : PG_UINT64_MAX >> (64 - paths->n);
}

/*
 * Follows a set of paths, which lead to a container "depth" levels down, by
 * one step.  Returns true when one of them ends there; "inner" becomes the
 * set of those that go on.
 */
bool
paths_follow(const IdemPaths *paths, uint64 outer, int depth,
			 const char *step, int len, uint64 *inner)
{
	*inner = 0;
	for (int i = 0; i < paths->n; i++)
	{
		const Path *path = &paths->path[i];

		if ((outer & (UINT64CONST(1) << i)) == 0 ||
			path->lens[depth] != len ||
			memcmp(path->steps[depth], step, len) != 0)
			continue;
		if (path->nsteps == depth + 1)
			return true;
		*inner |= UINT64CONST(1) << i;
	}
	return false;
}
