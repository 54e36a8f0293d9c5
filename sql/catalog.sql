-- What the catalogues say about each object of the extension.  From 17 on the
-- types that come with a table or a type are members as well: left out.
CREATE TEMP TABLE member AS
SELECT classid, objid FROM pg_depend AS d JOIN pg_extension AS e ON refobjid = e.oid
WHERE extname = 'idempotency' AND refclassid = 'pg_extension'::regclass AND deptype = 'e'
	  AND NOT EXISTS (SELECT FROM pg_depend AS i
					  WHERE (i.classid, i.objid, i.deptype) = (d.classid, d.objid, 'i'));

-- Functions: volatility, strictness, parallel safety, whose rights.
\a
SELECT proname, pg_get_function_identity_arguments(oid) AS arguments,
	   pg_get_function_result(oid) AS result, provolatile AS volatile,
	   proparallel AS parallel, proisstrict AS strict, prosecdef AS definer, proconfig
FROM pg_proc WHERE oid IN (SELECT objid FROM member WHERE classid = 'pg_proc'::regclass)
ORDER BY proname, pronargs;
\a

-- Nothing is granted to PUBLIC, and nobody but the owner has a grant.
SELECT objid::regprocedure FROM member JOIN pg_proc ON oid = objid
WHERE classid = 'pg_proc'::regclass
	  AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee <> proowner));
SELECT objid::regclass FROM member JOIN pg_class ON oid = objid
WHERE classid = 'pg_class'::regclass AND relkind = 'r'
	  AND (relacl IS NULL OR EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner));
-- The row types of tables keep their defaults: pg_dump cannot dump others.
SELECT typname FROM pg_type
WHERE oid IN (SELECT objid FROM member WHERE classid = 'pg_type'::regclass)
	  AND (typacl IS NULL OR EXISTS (SELECT FROM aclexplode(typacl) WHERE grantee <> typowner));
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attacl IS NOT NULL AND attrelid IN (SELECT objid FROM member);

-- Everything has a comment, each column and argument list included.
SELECT pg_describe_object(classid, objid, 0) FROM member
WHERE obj_description(objid, classid::regclass::name) IS NULL
	  AND NOT (classid = 'pg_class'::regclass AND EXISTS (
			SELECT FROM pg_class WHERE oid = objid AND relkind = 'c'));
SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
WHERE attnum > 0 AND relkind IN ('r', 'c')
	  AND (attrelid IN (SELECT objid FROM member)
		   OR reltype IN (SELECT objid FROM member))
	  AND col_description(attrelid, attnum) IS NULL;

-- Tables: permanent, with a primary key, and part of a dump.
SELECT relname, relpersistence AS persistence, relreplident AS identity,
	   pg_get_constraintdef(c.oid) AS primary_key,
	   t.oid = ANY (extconfig) AS dumped, relrowsecurity AS row_security
FROM pg_class AS t LEFT JOIN pg_constraint AS c ON conrelid = t.oid AND contype = 'p',
	 pg_extension AS e
WHERE extname = 'idempotency' AND relkind = 'r'
	  AND t.oid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass)
ORDER BY relname;
SELECT extrelocatable, extcondition FROM pg_extension WHERE extname = 'idempotency';
SELECT count(*) AS foreign_keys FROM pg_constraint
WHERE contype = 'f' AND (conrelid IN (SELECT objid FROM member) OR confrelid IN (SELECT objid FROM member));

-- The index that everything rests on: the address and nothing else, compared
-- byte for byte, at once, for every row.  A policy has its operation alone.
-- Guards are unique where they are held.
SELECT indexrelid::regclass::text AS index, attname, collname,
	   indisunique AND indimmediate AND indisvalid AS unique, indisprimary AS primary,
	   indpred IS NULL AND indexprs IS NULL AS whole
FROM pg_index JOIN pg_attribute ON attrelid = indexrelid
	 LEFT JOIN pg_collation AS c ON attcollation = c.oid
WHERE indrelid IN ('idem_record'::regclass, 'idem_policy'::regclass)
ORDER BY 1, attnum;
SELECT tgrelid::regclass::text AS table, tgname, tgenabled AS enabled, tgfoid::regproc
FROM pg_trigger WHERE tgrelid IN (SELECT objid FROM member) AND NOT tgisinternal ORDER BY 1, 2;

-- The columns, in their order.
SELECT attnum AS n, attname, format_type(atttypid, atttypmod) AS type, attnotnull
FROM pg_attribute WHERE attrelid = 'idem_record'::regclass AND attnum > 0 ORDER BY attnum;
SELECT attnum AS n, attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = 'idem_ticket'::regclass AND attnum > 0 ORDER BY attnum;
SELECT attnum AS n, attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = 'idem_response'::regclass AND attnum > 0 ORDER BY attnum;
