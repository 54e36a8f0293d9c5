/*
 * Everything that the catalogues say about the extension, one fact a line,
 * without oids: the lines of an upgraded database and of a fresh one, with the
 * extension in schemas of the same name, have to be the same.  One query.
 */
WITH extension AS (
	SELECT * FROM pg_extension WHERE extname = 'idempotency'
), member AS (
	SELECT d.classid, d.objid FROM pg_depend d, extension e
	WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
), relation AS (
	/* members, and what comes with them: indexes, sequences, rows of types */
	SELECT c.* FROM pg_class c
	WHERE c.oid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass)
	   OR c.oid IN (SELECT typrelid FROM pg_type WHERE oid IN
					(SELECT objid FROM member WHERE classid = 'pg_type'::regclass))
	UNION
	SELECT c.* FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
	WHERE i.indrelid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass)
), object AS (
	SELECT classid, objid FROM member
	UNION SELECT 'pg_class'::regclass, oid FROM relation
	UNION SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
		WHERE conrelid IN (SELECT oid FROM relation)
	UNION SELECT 'pg_trigger'::regclass, oid FROM pg_trigger
		WHERE tgrelid IN (SELECT oid FROM relation) AND NOT tgisinternal
	UNION SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef
		WHERE adrelid IN (SELECT oid FROM relation)
	UNION SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite
		WHERE ev_class IN (SELECT oid FROM relation)
	UNION SELECT 'pg_policy'::regclass, oid FROM pg_policy
		WHERE polrelid IN (SELECT oid FROM relation)
	UNION SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext
		WHERE stxrelid IN (SELECT oid FROM relation)
	UNION SELECT 'pg_type'::regclass, oid FROM pg_type
		WHERE typrelid IN (SELECT oid FROM relation)
), fact (object, what, value) AS (
	SELECT 'extension', 'version, schema, relocatable',
		   concat_ws(' ', extversion, extnamespace::regnamespace, extrelocatable) FROM extension
	UNION ALL
	SELECT 'extension', 'dumps', concat_ws(' ', c.config::regclass, quote_literal(c.condition))
	FROM extension e, unnest(e.extconfig, e.extcondition) AS c (config, condition)
	UNION ALL
	SELECT 'extension', 'needs', pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
	FROM pg_depend d, extension e WHERE d.classid = 'pg_extension'::regclass AND d.objid = e.oid
	UNION ALL
	SELECT pg_describe_object(classid, objid, 0), 'member', 'yes' FROM member
	UNION ALL
	SELECT c.oid::regclass::text, 'relation',
		   concat_ws(' ', c.relkind, c.relpersistence, c.relreplident, c.relnatts, c.relchecks,
					 c.relhasrules, c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
					 (SELECT amname FROM pg_am WHERE oid = c.relam), nullif(c.reltablespace, 0),
					 (SELECT t.reloptions FROM pg_class t WHERE t.oid = c.reltoastrelid),
					 CASE WHEN c.relowner <> (SELECT extowner FROM extension) THEN 'of another owner' END)
	FROM relation c
	UNION ALL
	SELECT c.oid::regclass || ' column ' || a.attnum, 'column',
		   concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
					 nullif(a.attcollation, 0)::regcollation, a.attidentity, a.attgenerated, a.attstorage,
					 a.attcompression, a.attstattarget, a.attisdropped,
					 /* late releases of 15 to 17 keep a counter there */
					 (SELECT string_agg(o, ' ') FROM unnest(a.attoptions) AS o WHERE o NOT LIKE 'pg_attver=%'),
					 'default ' || pg_get_expr(d.adbin, d.adrelid))
	FROM relation c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
	LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	UNION ALL
	SELECT o.conrelid::regclass || ' constraint ' || o.conname, 'constraint',
		   concat_ws(' ', pg_get_constraintdef(o.oid), o.convalidated)
	FROM pg_constraint o WHERE o.conrelid IN (SELECT oid FROM relation)
	UNION ALL
	SELECT i.indexrelid::regclass::text, 'index',
		   concat_ws(' ', pg_get_indexdef(i.indexrelid), i.indisprimary, i.indimmediate, i.indisvalid,
					 i.indisready, i.indislive, i.indisclustered, i.indisreplident)
	FROM pg_index i WHERE i.indexrelid IN (SELECT oid FROM relation)
	UNION ALL
	SELECT t.tgrelid::regclass || ' trigger ' || t.tgname, 'trigger',
		   concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
	FROM pg_trigger t WHERE t.tgrelid IN (SELECT oid FROM relation) AND NOT t.tgisinternal
	UNION ALL
	SELECT r.ev_class::regclass || ' rule ' || r.rulename, 'rule', concat_ws(' ', pg_get_ruledef(r.oid), r.ev_enabled)
	FROM pg_rewrite r WHERE r.ev_class IN (SELECT oid FROM relation)
	UNION ALL
	SELECT p.polrelid::regclass || ' policy ' || p.polname, 'policy',
		   concat_ws(' ', p.polcmd, p.polpermissive, p.polroles::regrole[]::text,
					 pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
	FROM pg_policy p WHERE p.polrelid IN (SELECT oid FROM relation)
	UNION ALL
	SELECT s.stxrelid::regclass::text, 'statistics', pg_get_statisticsobjdef(s.oid)
	FROM pg_statistic_ext s WHERE s.stxrelid IN (SELECT oid FROM relation)
	UNION ALL
	SELECT s.seqrelid::regclass::text, 'sequence',
		   concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache,
					 s.seqcycle)
	FROM pg_sequence s WHERE s.seqrelid IN (SELECT oid FROM relation)
	UNION ALL
	/* with arguments, defaults, volatility, rights, settings, cost and body */
	SELECT p.oid::regprocedure::text, 'function',
		   concat_ws(' ', pg_get_functiondef(p.oid), p.provolatile, p.proparallel, p.proisstrict,
					 p.prosecdef, p.proleakproof, p.probin,
					 CASE WHEN p.proowner <> (SELECT extowner FROM extension) THEN 'of another owner' END)
	FROM pg_proc p WHERE p.oid IN (SELECT objid FROM member WHERE classid = 'pg_proc'::regclass)
	UNION ALL
	SELECT t.oid::regtype::text, 'type', concat_ws(' ', t.typtype, t.typcategory, t.typnotnull, t.typdefault)
	FROM pg_type t WHERE t.oid IN (SELECT objid FROM object WHERE classid = 'pg_type'::regclass)
	UNION ALL
	/* from pg_shdepend's side: whoever has a right, the default ones written out */
	SELECT pg_describe_object(a.class, a.oid, a.sub), 'right',
		   concat_ws(' ', CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
					 x.privilege_type, x.is_grantable)
	FROM (SELECT 'pg_class'::regclass::oid AS class, oid, 0 AS sub,
				 coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) AS acl
		  FROM relation WHERE relkind IN ('r', 'v', 'm', 'S', 'p', 'f')
		  UNION ALL
		  SELECT 'pg_class'::regclass, a.attrelid, a.attnum, a.attacl
		  FROM pg_attribute a WHERE a.attrelid IN (SELECT oid FROM relation)
		  UNION ALL
		  SELECT 'pg_proc'::regclass, oid, 0, coalesce(proacl, acldefault('f', proowner))
		  FROM pg_proc WHERE oid IN (SELECT objid FROM member WHERE classid = 'pg_proc'::regclass)
		  UNION ALL
		  SELECT 'pg_type'::regclass, oid, 0, coalesce(typacl, acldefault('T', typowner))
		  FROM pg_type WHERE oid IN (SELECT objid FROM object WHERE classid = 'pg_type'::regclass)) AS a,
		 aclexplode(a.acl) AS x
	UNION ALL
	/* what pg_dump takes for granted and leaves out */
	SELECT pg_describe_object(i.classoid, i.objoid, i.objsubid), 'initial right',
		   concat_ws(' ', i.privtype, (SELECT string_agg(v::text, ' ' ORDER BY v::text) FROM unnest(i.initprivs) AS v))
	FROM pg_init_privs i WHERE (i.classoid, i.objoid) IN (SELECT classid, objid FROM object)
	UNION ALL
	SELECT pg_describe_object(d.classoid, d.objoid, d.objsubid), 'comment', d.description
	FROM pg_description d WHERE (d.classoid, d.objoid) IN (SELECT classid, objid FROM object)
	   OR (d.classoid = 'pg_extension'::regclass AND d.objoid = (SELECT oid FROM extension))
	UNION ALL
	SELECT pg_describe_object(d.classid, d.objid, d.objsubid), 'depends',
		   concat_ws(' ', pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype)
	FROM pg_depend d WHERE (d.classid, d.objid) IN (SELECT classid, objid FROM object)
	UNION ALL
	SELECT s.classoid::regclass::text, 'label', s.label
	FROM pg_seclabel s WHERE (s.classoid, s.objoid) IN (SELECT classid, objid FROM object)
)
SELECT line
FROM (SELECT translate(concat_ws(' | ', object, what, value), E'\n\t', '  ') AS line FROM fact) AS l
ORDER BY line COLLATE "C";
