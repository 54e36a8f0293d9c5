/*
 * The tenants of a session, for what finds its rows by other means than an
 * address.  Views run their functions with the right of who reads them, so
 * this one is granted with each view.
 */
CREATE FUNCTION idem_tenant_allowed(tenant text) RETURNS boolean
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_tenant_allowed';
REVOKE ALL ON FUNCTION idem_tenant_allowed(text) FROM PUBLIC;
COMMENT ON FUNCTION idem_tenant_allowed(text) IS
'Whether this session may act on a tenant: the setting idempotency.allowed_tenants and the value that ALTER ROLE or ALTER DATABASE gave its login role both have to allow it.
Arguments: tenant; NULL asks about every tenant.
Returns: true or false, whether or not the tenant exists.
Errors: none. Tables: none.';

CREATE FUNCTION idem_require_every_tenant() RETURNS void
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_require_every_tenant';
REVOKE ALL ON FUNCTION idem_require_every_tenant() FROM PUBLIC;
COMMENT ON FUNCTION idem_require_every_tenant() IS
'Internal: refuses what concerns all tenants to a session that is bound to some. Errors: 42501. Tables: none.';
