/*-------------------------------------------------------------------------
 *
 * index.c
 *		What the indexes that the extension asks have to be like.
 *
 * Rows are looked for by fixed keys, and an entry is left out where a partial
 * index has none.  One of the same name with another order of columns, another
 * collation or another condition would answer as well, and miss rows: what has
 * run would be taken for new.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "idempotency.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define MAX_COLUMNS	4

typedef struct Shape
{
	const char *table;
	const char *name;			/* NULL: its primary key */
	const char *columns[MAX_COLUMNS];
	const char *condition;		/* as the server tells it; NULL: none */
} Shape;

static const Shape shapes[] = {
	{"idem_record", NULL, {"tenant", "operation", "key"}, NULL},
	{"idem_step", NULL, {"tenant", "operation", "key", "step"}, NULL},
	{"idem_intent", NULL, {"operation_id"}, NULL},
	{"idem_record", "idem_record_open", {"state", "lease_until", "once_more"},
	"(state = ANY (ARRAY['processing'::text, 'unknown'::text, 'released'::text]))"},
	{"idem_record", "idem_record_guard", {"tenant", "operation", "guard"},
	"((guard IS NOT NULL) AND ((state = ANY (ARRAY['processing'::text, 'unknown'::text, 'succeeded'::text]))"
	" OR ((state = 'released'::text) AND once_more)))"},
	{"idem_record", "idem_record_expiring", {"expires_at"},
	"((completed_at IS NOT NULL) AND ((response IS NOT NULL) OR (headers IS NOT NULL)"
	" OR (body IS NOT NULL) OR (request IS NOT NULL)))"},
	{"idem_record", "idem_record_tombstone", {"operation", "expires_at"},
	"((completed_at IS NOT NULL) AND (response IS NULL) AND (headers IS NULL)"
	" AND (body IS NULL) AND (request IS NULL))"},
	{"idem_event", "idem_event_address", {"tenant", "operation", "key"}, NULL},
	{"idem_intent", "idem_intent_address", {"tenant", "operation", "key"}, NULL},
	{"idem_intent", "idem_intent_due", {"target", "due_at"},
	"((state = 'pending'::text) AND send)"},
	{"idem_intent", "idem_intent_open", {"target", "lease_until"},
	"(state = ANY (ARRAY['in_flight'::text, 'unknown'::text]))"},
	{"idem_intent", "idem_intent_resend", {"target", "lease_until"},
	"((state = ANY (ARRAY['in_flight'::text, 'unknown'::text])) AND send"
	" AND (resend_safe_for IS NOT NULL))"}
};

/* Those found to be right; what an index is like never changes. */
static Oid	fitting[lengthof(shapes)];

static bool
is_meant(const Shape *shape, Relation index)
{
	const char *table = get_rel_name(index->rd_index->indrelid);

	if (table == NULL || strcmp(table, shape->table) != 0)
		return false;
	if (shape->name == NULL)
		return index->rd_index->indisprimary;
	return strcmp(RelationGetRelationName(index), shape->name) == 0;
}

static bool
has_columns(const Shape *shape, Relation index)
{
	Form_pg_index form = index->rd_index;
	int			n = 0;

	while (n < MAX_COLUMNS && shape->columns[n] != NULL)
		n++;
	if (index->rd_rel->relam != BTREE_AM_OID || form->indnkeyatts != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		/* of an expression there is none */
		const char *column = get_attname(form->indrelid,
										 form->indkey.values[i], true);
		Oid			collation = index->rd_indcollation[i];

		if (column == NULL || strcmp(column, shape->columns[i]) != 0 ||
			(OidIsValid(collation) && collation != C_COLLATION_OID) ||
			index->rd_indoption[i] != 0)
			return false;
	}
	return true;
}

/*
 * As the server tells it to whoever has no search_path and quotes what needs
 * it only.  An error undoes the settings.
 */
static char *
condition_of(Relation index, Datum stored)
{
	int			nest = NewGUCNestLevel();
	Datum		told;

	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	(void) set_config_option("quote_all_identifiers", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	told = DirectFunctionCall2(pg_get_expr, stored,
							   ObjectIdGetDatum(index->rd_index->indrelid));
	AtEOXact_GUC(true, nest);
	return TextDatumGetCString(told);
}

static bool
has_condition(const Shape *shape, Relation index)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
										 Anum_pg_index_indpred, &isnull);

	if (isnull || shape->condition == NULL)
		return isnull && shape->condition == NULL;
	return strcmp(condition_of(index, stored), shape->condition) == 0;
}

/*
 * Is the index as the extension's script makes it?  The caller has its table
 * locked.
 */
bool
index_fits(Oid oid)
{
	Relation	index;
	bool		fits = false;

	for (int i = 0; i < lengthof(shapes); i++)
	{
		if (fitting[i] == oid)
			return true;
	}
	index = index_open(oid, AccessShareLock);
	for (int i = 0; i < lengthof(shapes) && !fits; i++)
	{
		fits = is_meant(&shapes[i], index) &&
			has_columns(&shapes[i], index) &&
			has_condition(&shapes[i], index);
		if (fits)
			fitting[i] = oid;
	}
	index_close(index, NoLock);
	return fits;
}
