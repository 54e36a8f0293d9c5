/*-------------------------------------------------------------------------
 *
 * idempotency.h
 *		What the rooms of the extension offer each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEMPOTENCY_H
#define IDEMPOTENCY_H

#include "fmgr.h"
#include "access/genam.h"
#include "datatype/timestamp.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/snapshot.h"

#include "address.h"
#include "errors.h"
#include "record.h"
#include "stat.h"
#include "state.h"

/*
 * settings.c: every GUC.
 */
#define IDEM_ALLOWED_TENANTS	"idempotency.allowed_tenants"
#define IDEM_EVERY_TENANT		"*"

extern PGDLLIMPORT int idem_max_response_size;
extern PGDLLIMPORT int idem_stat_operations;
extern PGDLLIMPORT char *idem_allowed_tenants;

extern void settings_init(void);
extern int64 settings_ttl_us(void);
extern int64 settings_wait_us(void);
extern int64 settings_retention_us(void);
extern bool settings_replicated(void);

/*
 * duration.c: intervals of a fixed length.
 */
#define IDEM_DURATION_MAX_DAYS	36500
#define IDEM_WAIT_MAX_US		USECS_PER_DAY

extern int64 duration_us(const char *what, const Interval *value);
extern int64 duration_wait_us(const char *what, const Interval *value);
extern Interval *duration_interval(int64 us);

/*
 * paths.c: parts of a request that do not count.
 */
#define IDEM_PATHS_MAX		64	/* bits of a mask */

typedef struct IdemPaths IdemPaths;

extern IdemPaths *paths_parse(ArrayType *array);
extern uint64 paths_all(const IdemPaths *paths);
extern bool paths_follow(const IdemPaths *paths, uint64 outer, int depth,
						 const char *step, int len, uint64 *inner);

/*
 * digest.c: SHA-256.
 */
#define IDEM_DIGEST_SIZE			32

extern void digest_begin(void);
extern void digest_add(const void *bytes, Size len);
extern void digest_end(uint8 *out);

/*
 * fingerprint.c: jsonb value -> version and digest.
 */
#define IDEM_FINGERPRINT_SIZE		(1 + IDEM_DIGEST_SIZE)

extern bytea *fingerprint_compute(Jsonb *request, ArrayType *ignore_paths);
extern void fingerprint_check_given(bytea *fingerprint);
extern bool fingerprint_equal(bytea *a, bytea *b);

/*
 * access.c: which tenants a session may act on.
 */
extern bool access_check_list(const char *list);
extern bool access_allows(text *tenant);
extern void access_require(text *tenant);

/*
 * catalog.c: oids of the extension's own objects.
 */
typedef struct IdemCatalog
{
	Oid			record;			/* table idem_record */
	Oid			record_open;	/* its partial index of open ones */
	Oid			record_guard;	/* its partial index of guards */
	Oid			record_expiring;	/* its partial index of what to sweep */
	Oid			record_tombstone;	/* its partial index of what is swept */
	Oid			policy;			/* table idem_policy */
	Oid			event;			/* table idem_event */
	Oid			event_address;	/* its index by address */
	Oid			step;			/* table idem_step */
	Oid			intent;			/* table idem_intent */
	Oid			intent_address; /* its indexes: by address, */
	Oid			intent_due;		/* what is to be sent, */
	Oid			intent_open;	/* what is in question, */
	Oid			intent_resend;	/* and of that, what may be sent again */
	Oid			policy_steps;	/* table idem_policy_steps */
	Oid			origin;			/* table idem_origin */
	Oid			ticket;			/* type idem_ticket */
	Oid			response;		/* type idem_response */
} IdemCatalog;

extern void catalog_init(void);
extern const IdemCatalog *catalog_get(void);
extern Relation catalog_open(const Oid *table, LOCKMODE mode);
extern Relation catalog_open_named(const Oid *index, const char *name,
								   LOCKMODE mode);
extern Relation catalog_open_key(Relation table, LOCKMODE mode);

/* An index by its member in the catalogue. */
#define catalog_open_index(member, mode) \
	catalog_open_named(&catalog_get()->member, "idem_" #member, mode)

/*
 * index.c: what an index has to be like.
 */
extern bool index_fits(Oid oid);

/*
 * durability.c: how safe a commit has to be.
 */
extern void durability_require_writable(const IdemAddress *address);
extern void durability_begin(void);
extern void durability_flush(void);
extern void durability_answered(IdemOutcome outcome);
extern void durability_pre_commit(void);
extern void durability_reset(void);

/*
 * event.c: the trail.
 */
extern const int event_columns;
extern const Oid event_types[];

extern void event_write(const IdemAddress *address, int32 attempt,
						IdemState from, IdemState to, text *reason);
extern void event_write_at(const IdemAddress *address, TimestampTz at,
						   int32 attempt, IdemState from, IdemState to,
						   text *reason);
extern void event_write_intent(const IdemAddress *address, int32 attempt,
							   text *intent, const char *from,
							   const char *to, text *reason);

/*
 * adopt.c: copies of a database.
 */
extern const int origin_columns;
extern const Oid origin_types[];

extern bool adopt_is_copy(void);
extern void adopt_require(const IdemAddress *address);

/*
 * recover.c: what is done about a command from outside.
 */
extern void recover_answered(const IdemAddress *address,
							 TimestampTz doubt_since);

/*
 * ticket.c: the types idem_ticket and idem_response.
 */
typedef struct IdemTicket
{
	IdemOutcome outcome;
	int64		token;			/* 0: no right to run */
	int64		retry_after_us; /* -1: NULL */
	bool		with_result;	/* may the result be shown? */
	text	   *duplicate_of;	/* key of the first command; NULL: none */
	IdemRecord	record;			/* the facts */
} IdemTicket;

extern const int ticket_columns;
extern const Oid ticket_types[];
extern const int response_columns;
extern const Oid response_types[];

extern HeapTuple ticket_form(const IdemAddress *address,
							 const IdemTicket *ticket);
extern Datum ticket_datum(const IdemAddress *address,
						  const IdemTicket *ticket);
extern void ticket_read(HeapTupleHeader header, IdemAddress *address,
						int64 *token);
extern IdemOutcome ticket_read_outcome(HeapTupleHeader header);
extern text *ticket_read_duplicate_of(HeapTupleHeader header);
extern IdemState response_read(HeapTupleHeader row, IdemResult *result);

/*
 * policy.c: what an operation's policy and the settings say.
 */
typedef struct IdemPolicy
{
	int64		ttl_us;			/* 0: the setting */
	int64		retention_us;	/* 0: the setting */
	int64		lease_us;		/* 0: atomic */
	int64		max_lease_us;	/* 0: no limit but the general one */
	int64		wait_us;		/* -1: the setting */
	int32		max_attempts;	/* 0: no limit */
	int32		version;		/* 0: there is no policy */
	bool		keep_request;
	ArrayType  *ignore_paths;	/* NULL: none; valid until the next get */
	char	   *notify;			/* channel; NULL: none; likewise */
	bool		has_steps;
} IdemPolicy;

extern const int policy_columns;
extern const Oid policy_types[];

extern void policy_init(void);
extern void policy_get(text *operation, IdemPolicy *policy);
extern int64 policy_ttl_us(const IdemPolicy *policy, int64 asked_us);
extern int64 policy_retention_us(const IdemPolicy *policy);
extern int64 policy_lease_us(const IdemPolicy *policy, const Interval *asked);
extern int64 policy_wait_us(const IdemPolicy *policy, const Interval *asked);

/*
 * answer.c: what a record says to everybody but its owner.
 */
#define ANSWER_RETRY_MAX_US USECS_PER_SEC

extern IdemTicket answer_new(IdemOutcome outcome, const IdemRecord *record);
extern void answer_in_progress(IdemTicket *ticket, const IdemRecord *record,
							   int64 retry_after_us);
extern bool answer_from_record(IdemTicket *ticket, const IdemRecord *record,
							   bytea *fingerprint, TimestampTz now);
extern bool answer_own(IdemTicket *ticket, const IdemAddress *address,
					   bytea *fingerprint, text *guard);

/*
 * claim.c: claims.
 */
typedef struct IdemClaim
{
	IdemAddress address;
	IdemPolicy	policy;
	NullableDatum request;
	bytea	   *fingerprint;	/* NULL: no request */
	text	   *guard;			/* NULL: none */
	bool		guards_later;	/* see claim_take() */
	int64		lease_us;		/* 0: atomic */
	int64		ttl_us;			/* 0: the default */
	text	   *owner;			/* NULL: none */
	TimestampTz deadline;		/* of waiting */
	instr_time	waiting_since;	/* zero: it did not wait */
} IdemClaim;

/* Where a function's optional arguments stand; -1 for "has none". */
typedef struct IdemClaimArgs
{
	int			wait;
	int			lease;
	int			ttl;
	int			owner;
} IdemClaimArgs;

extern void claim_set_options(IdemClaim *claim, FunctionCallInfo fcinfo,
							  const IdemClaimArgs *args);
extern void claim_set_request(IdemClaim *claim, NullableDatum request,
							  NullableDatum fingerprint,
							  NullableDatum guard);
extern int64 claim_token(void);
extern bool claim_take(IdemTable *table, IdemClaim *claim,
					   IdemTicket *ticket);

/*
 * attempt.c: the next attempt of a command.
 */
extern bool attempt_give_up(IdemTable *table, const IdemClaim *claim,
							IdemRecord *record, IdemTicket *ticket);
extern bool attempt_grant(IdemTable *table, IdemClaim *claim,
						  IdemRecord *record, IdemTicket *ticket);

/*
 * guard.c: business uniqueness next to the key.
 */
extern void guard_set(IdemClaim *claim, NullableDatum guard);
extern bool guard_is_held_by(const IdemRecord *record);
extern bool guard_differs(text *asked, text *stored);
extern text *guard_of(const IdemClaim *claim, const IdemRecord *record);
extern bool guard_take(IdemTable *table, IdemClaim *claim, text *guard,
					   IdemRecord *record, IdemTicket *ticket);
extern void guard_lock_to_write(const IdemAddress *address,
								const IdemRecord *record);

/*
 * complete.c: what the owner of a claim does with it.
 */
typedef struct IdemChange
{
	IdemAction	action;
	IdemResult	result;			/* of complete and fail */
	text	   *reason;			/* of release, unknown; NULL: none */
	bool		has_lease;		/* of heartbeat */
	Interval	lease;
} IdemChange;

extern void complete_check_size(const IdemAddress *address, const char *what,
								NullableDatum value);
extern void complete_check_result(const IdemAddress *address,
								  const IdemResult *result);
extern void complete_end(IdemRecord *record, const IdemAddress *address,
						 IdemState state, const IdemResult *result,
						 int64 asked_ttl_us);
extern void complete_refuse(const IdemAddress *address, IdemState state,
							IdemAction action, const char *hint);
extern void complete_read_result(const NullableDatum *args,
								 const IdemAddress *address,
								 IdemResult *result);
extern text *complete_read_reason(NullableDatum arg, bool required);
extern void complete_apply(IdemTable *table, const IdemAddress *address,
						   int64 token, const IdemChange *change,
						   IdemRecord *record);

/*
 * owner.c: the SQL functions of a claim's owner.
 */
extern HeapTupleHeader owner_ticket(FunctionCallInfo fcinfo, int arg);

#endif							/* IDEMPOTENCY_H */
