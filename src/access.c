/*-------------------------------------------------------------------------
 *
 * access.c
 *		Which tenants a session may act on.
 *
 * Two lists have to name a tenant: the setting idempotency.allowed_tenants as
 * it is in force, and what ALTER ROLE or ALTER DATABASE gave the login role.
 * The second is read from its catalogue, because a session can keep it from
 * coming into force: until the library is loaded the setting is a placeholder
 * that anybody may set, and options of the connection go before those of the
 * role.  So nothing that a session does lets it act on more tenants than its
 * role may; to SET the setting can only narrow that.
 *
 * Only a superuser, or who was granted SET on the parameter, can write the
 * setting into the catalogue, whether or not the library is loaded.
 *
 * Like any setting of a role, it counts from the next session on: the
 * catalogue is read once, and again when the session's role changes.
 *
 * Memory: the list of the role stays in TopMemoryContext.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "idempotency.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define BLANKS		" \t\n\v\f\r"
#define NAME_BYTES	(IDEM_TENANT_MAX * MAX_MULTIBYTE_CHAR_LEN)

static char *role_list = NULL;	/* NULL: not read yet */
static Oid	role_list_of = InvalidOid;

/*
 * Reads a name, up to the comma or the end, into "name", which has room for
 * NAME_BYTES.  Returns what follows it, or NULL where there is no name.
 */
static const char *
read_name(const char *list, char *name, int *len)
{
	bool		quoted = *list == '"';
	bool		blank = true;

	*len = 0;
	for (list += quoted ? 1 : 0;; list++)
	{
		if (quoted && *list == '"' && *++list != '"')
			break;
		if (*list == '\0' && quoted)
			return NULL;
		if (!quoted && (*list == '\0' || *list == ',' || *list == '"' ||
						strchr(BLANKS, *list) != NULL))
			break;
		if (*len == NAME_BYTES)
			return NULL;
		blank = blank && strchr(BLANKS, *list) != NULL;
		name[(*len)++] = *list;
	}
	return blank ? NULL : list;
}

/*
 * Names of tenants, separated by commas; in double quotes where they have a
 * comma, a blank or a double quote, which is doubled then.  Nothing is folded
 * or cut.  The empty list names no tenant, IDEM_EVERY_TENANT every one.
 *
 * False where the list is malformed.  "tenant" may be NULL: then "found" tells
 * whether every tenant is meant.
 */
static bool
search_list(const char *list, text *tenant, bool *found)
{
	char		name[NAME_BYTES];
	int			len;

	list += strspn(list, BLANKS);
	*found = list[0] == '*' && list[1 + strspn(list + 1, BLANKS)] == '\0';
	if (*found || *list == '\0')
		return true;
	for (;;)
	{
		const char *begin = list;

		list = read_name(list, name, &len);
		/* it would be overlooked among others */
		if (list == NULL || (*begin == '*' && len == 1))
			return false;
		if (tenant != NULL && len == VARSIZE_ANY_EXHDR(tenant) &&
			memcmp(name, VARDATA_ANY(tenant), len) == 0)
			*found = true;
		list += strspn(list, BLANKS);
		if (*list == '\0')
			return true;
		if (*list != ',')
			return false;
		list++;
		list += strspn(list, BLANKS);
	}
}

/*
 * What is malformed allows nothing.
 */
static bool
list_allows(const char *list, text *tenant)
{
	bool		found;

	/* the common case */
	if (strcmp(list, IDEM_EVERY_TENANT) == 0)
		return true;
	return search_list(list, tenant, &found) && found;
}

/*
 * For the check hook of the setting.
 */
bool
access_check_list(const char *list)
{
	bool		found;

	if (search_list(list, NULL, &found))
		return true;
	GUC_check_errdetail("It is not a list of names separated by commas.");
	GUC_check_errhint("Put a name with a comma, a blank or a double quote into double quotes; * alone means every tenant.");
	return false;
}

/*
 * The value of our setting among "name=value" entries; NULL: none.
 */
static char *
find_setting(ArrayType *entries)
{
	const char *name = IDEM_ALLOWED_TENANTS;
	int			len = strlen(name);
	char	   *value = NULL;
	Datum	   *items;
	bool	   *nulls;
	int			n;

	deconstruct_array(entries, TEXTOID, -1, false, TYPALIGN_INT, &items,
					  &nulls, &n);
	/* of two spellings the server takes the later one */
	for (int i = 0; i < n; i++)
	{
		char	   *entry = TextDatumGetCString(items[i]);

		if (pg_strncasecmp(entry, name, len) == 0 && entry[len] == '=')
			value = entry + len + 1;
	}
	return value;
}

/*
 * What is set for a role in a database, or for any (InvalidOid); NULL:
 * nothing.
 */
static char *
read_setting(Relation rel, Oid database, Oid role)
{
	char	   *value = NULL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(database));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(role));
	scan = systable_beginscan(rel, DbRoleSettingDatidRolidIndexId, true, NULL,
							  2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		entries = heap_getattr(tuple,
										   Anum_pg_db_role_setting_setconfig,
										   RelationGetDescr(rel), &isnull);

		if (!isnull)
			value = find_setting(DatumGetArrayTypeP(entries));
	}
	systable_endscan(scan);
	return value;
}

/*
 * The list of the session's login role.
 */
static const char *
get_role_list(void)
{
	Oid			role = GetSessionUserId();
	Relation	rel;
	char	   *value;

	if (role_list != NULL && role_list_of == role)
		return role_list;

	/* from the most to the least specific, as the server does */
	rel = table_open(DbRoleSettingRelationId, AccessShareLock);
	value = read_setting(rel, MyDatabaseId, role);
	if (value == NULL)
		value = read_setting(rel, InvalidOid, role);
	if (value == NULL)
		value = read_setting(rel, MyDatabaseId, InvalidOid);
	if (value == NULL)
		value = read_setting(rel, InvalidOid, InvalidOid);
	table_close(rel, AccessShareLock);

	value = MemoryContextStrdup(TopMemoryContext,
								value != NULL ? value : IDEM_EVERY_TENANT);
	if (role_list != NULL)
		pfree(role_list);
	role_list = value;
	role_list_of = role;
	return role_list;
}

/*
 * May the session act on the tenant, or on every one (NULL)?
 */
bool
access_allows(text *tenant)
{
	return list_allows(idem_allowed_tenants, tenant) &&
		list_allows(get_role_list(), tenant);
}

/*
 * Says no more than what was asked: whether the tenant exists is none of the
 * asker's business.
 */
void
access_require(text *tenant)
{
	char	   *role;

	if (access_allows(tenant))
		return;
	role = GetUserNameFromId(GetSessionUserId(), false);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("tenant is not allowed"),
			 tenant != NULL ?
			 errdetail("Role \"%s\" may not act on tenant \"%s\".", role,
					   text_to_cstring(tenant)) :
			 errdetail("Role \"%s\" may not act on every tenant.", role),
			 errhint("A superuser can set %s for the role.",
					 IDEM_ALLOWED_TENANTS)));
}

PG_FUNCTION_INFO_V1(idem_tenant_allowed);
Datum
idem_tenant_allowed(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(access_allows(PG_ARGISNULL(0) ? NULL :
								 PG_GETARG_TEXT_PP(0)));
}

PG_FUNCTION_INFO_V1(idem_require_every_tenant);
Datum
idem_require_every_tenant(PG_FUNCTION_ARGS)
{
	access_require(NULL);
	PG_RETURN_VOID();
}
