/*-------------------------------------------------------------------------
 *
 * dispatch.c
 *		Handing out many intents of a target at once: to be sent
 *		(idem_dispatch), or to be asked about (idem_reconcile).
 *
 * There is no watermark: whatever is due and free is handed out, however late
 * it was committed.  Several queues, each an index in the order of age, are
 * merged: the oldest of all goes first, so none keeps another waiting.
 *
 * Locking: rows alone, without the key locks of their commands, of which there
 * may be as many; what is locked or has just been changed is skipped, so
 * nothing here ever waits.  See intent.c for the other side.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "compat.h"
#include "funcapi.h"
#include "intent.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#define HAND_OUT_MAX	10000
#define MAX_QUEUES		2

typedef enum QueueKind
{
	QUEUE_DUE,					/* to be sent */
	QUEUE_RESEND,				/* sent, lapsed; may be sent again */
	QUEUE_LAPSED,				/* in question */
	QUEUE_AGELESS				/* the same, without a lease */
} QueueKind;

/* Intents of one target in the order of age, by an index (target, age). */
typedef struct Queue
{
	QueueKind	kind;
	Relation	index;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	IdemIntent	first;
	TimestampTz age;			/* of the first */
	bool		more;			/* is there a first? */
} Queue;

/* One call. */
typedef struct HandOut
{
	IdemIntentTable table;
	Snapshot	snapshot;
	TupleTableSlot *locked;
	IdemWorker	worker;
	text	   *target;
	int			n;
	TimestampTz now;
	Queue		queues[MAX_QUEUES];
	int			nqueues;
} HandOut;

static int
read_count(FunctionCallInfo fcinfo, int arg)
{
	int			n = PG_ARGISNULL(arg) ? 0 : PG_GETARG_INT32(arg);

	if (n < 1 || n > HAND_OUT_MAX)
		ereport(ERROR,
				(errcode(PG_ARGISNULL(arg) ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
						 ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("n is out of range"),
				 errdetail("It is %s; it must be 1 to %d.",
						   PG_ARGISNULL(arg) ? "NULL" : psprintf("%d", n),
						   HAND_OUT_MAX),
				 errhint("Call again for more.")));
	return n;
}

static void
begin(HandOut *out, FunctionCallInfo fcinfo, const char *name)
{
	PreventCommandIfReadOnly(name);
	PreventCommandIfParallelMode(name);
	adopt_require(NULL);
	out->target = PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0);
	address_check_text("target", out->target, IDEM_TARGET_MAX,
					   "Name the system that is called.");
	outbox_read_worker(&out->worker, fcinfo, 1, 3);
	out->n = read_count(fcinfo, 2);
	durability_begin();
	InitMaterializedSRF(fcinfo, 0);

	intents_open(&out->table);
	writer_open(&out->table.writer, out->table.rel);
	out->snapshot = RegisterSnapshot(GetLatestSnapshot());
	out->locked = table_slot_create(out->table.rel, NULL);
	out->now = GetCurrentTimestamp();
	out->nqueues = 0;
}

/*
 * Of a tenant that the session may act on; what this transaction noted must
 * not be known outside yet, and what was sent may be sent again within a
 * window only.
 */
static bool
is_eligible(const HandOut *out, const Queue *queue)
{
	if (!access_allows(queue->first.address.tenant))
		return false;
	if (queue->kind == QUEUE_DUE)
		return !FullTransactionIdEquals(queue->first.created_by,
										GetTopFullTransactionIdIfAny());
	return queue->kind != QUEUE_RESEND ||
		outbox_may_resend(&queue->first, out->now);
}

static void
advance(const HandOut *out, Queue *queue)
{
	do
	{
		CHECK_FOR_INTERRUPTS();
		queue->more = index_getnext_slot(queue->scan, ForwardScanDirection,
										 queue->slot);
		if (!queue->more)
			return;
		intent_from_row(&queue->first, queue->slot);
	} while (!is_eligible(out, queue));
	queue->age = queue->kind == QUEUE_DUE ? queue->first.due_at :
		queue->first.lease_until;	/* IDEM_NO_TIME is the oldest */
}

static void
add_queue(HandOut *out, QueueKind kind, Relation index)
{
	Queue	   *queue = &out->queues[out->nqueues++];
	ScanKeyData keys[2];

	queue->kind = kind;
	queue->index = index;
	queue->scan = compat_index_beginscan(out->table.rel, queue->index,
										 out->snapshot, 2);
	queue->slot = table_slot_create(out->table.rel, NULL);
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(out->target));
	if (kind == QUEUE_AGELESS)
		ScanKeyEntryInitialize(&keys[1], SK_ISNULL | SK_SEARCHNULL, 2,
							   InvalidStrategy, InvalidOid, InvalidOid,
							   InvalidOid, (Datum) 0);
	else
		ScanKeyInit(&keys[1], 2, BTLessEqualStrategyNumber,
					F_TIMESTAMPTZ_LE, TimestampTzGetDatum(out->now));
	index_rescan(queue->scan, keys, 2, NULL, 0);
	advance(out, queue);
}

/*
 * The queue with the oldest intent, or NULL.
 */
static Queue *
oldest(HandOut *out)
{
	Queue	   *result = NULL;

	for (int i = 0; i < out->nqueues; i++)
	{
		Queue	   *queue = &out->queues[i];

		if (queue->more && (result == NULL || queue->age < result->age))
			result = queue;
	}
	return result;
}

/*
 * Takes the row, if it is free and still as it was read.
 */
static bool
try_lock(HandOut *out, const IdemIntent *intent)
{
	ItemPointerData tid = intent->tid;
	TM_FailureData failure;

	return table_tuple_lock(out->table.rel, &tid, out->snapshot, out->locked,
							GetCurrentCommandId(false),
							LockTupleNoKeyExclusive, LockWaitSkip, 0,
							&failure) == TM_Ok;
}

/*
 * Asked about from now on; nobody knows what became of it.
 */
static void
ask(IdemIntent *intent, const IdemWorker *worker, TimestampTz now)
{
	intent->state = INTENT_UNKNOWN;
	intent->token = claim_token();
	intent->past_token = 0;
	intent->worker = text_or_null(worker->name);
	intent->lease_until = now + worker->lease_us;
}

static void
hand_out_one(HandOut *out, const Queue *queue, Tuplestorestate *result)
{
	const IdemIntent *before = &queue->first;
	IdemIntent	after = *before;

	if (!try_lock(out, before))
		return;
	if (queue->kind == QUEUE_DUE || queue->kind == QUEUE_RESEND)
		outbox_take(&after, &out->worker, out->now);
	else
		ask(&after, &out->worker, out->now);
	if (!intents_update(&out->table, &after))
		elog(ERROR, "an intent changed while it was locked");
	if (after.state == INTENT_IN_FLIGHT)
		outbox_note_taken(before, &after);
	else if (before->state == INTENT_IN_FLIGHT)
		outbox_note(before, &after, outbox_attempt(&before->address),
					cstring_to_text("lease lapsed in flight"));
	if (after.state == INTENT_IN_FLIGHT)
		stat_count(after.address.operation, STAT_DISPATCHED);
	tuplestore_puttuple(result, intents_form(&out->table, &after));
	out->n--;
}

static Datum
hand_out(HandOut *out, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext each = AllocSetContextCreate(caller, "idempotency hand-out",
											   ALLOCSET_DEFAULT_SIZES);
	Queue	   *queue;

	while (out->n > 0 && (queue = oldest(out)) != NULL)
	{
		MemoryContextSwitchTo(each);
		hand_out_one(out, queue, rsinfo->setResult);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(each);
		advance(out, queue);
	}
	MemoryContextDelete(each);
	for (int i = 0; i < out->nqueues; i++)
	{
		ExecDropSingleTupleTableSlot(out->queues[i].slot);
		index_endscan(out->queues[i].scan);
		index_close(out->queues[i].index, NoLock);
	}
	ExecDropSingleTupleTableSlot(out->locked);
	UnregisterSnapshot(out->snapshot);
	intents_close(&out->table);
	durability_flush();
	PG_RETURN_NULL();
}

PG_FUNCTION_INFO_V1(idem_dispatch);
Datum
idem_dispatch(PG_FUNCTION_ARGS)
{
	HandOut		out;

	begin(&out, fcinfo, "idem_dispatch()");
	add_queue(&out, QUEUE_DUE,
			  catalog_open_index(intent_due, AccessShareLock));
	add_queue(&out, QUEUE_RESEND,
			  catalog_open_index(intent_resend, AccessShareLock));
	return hand_out(&out, fcinfo);
}

PG_FUNCTION_INFO_V1(idem_reconcile);
Datum
idem_reconcile(PG_FUNCTION_ARGS)
{
	HandOut		out;

	begin(&out, fcinfo, "idem_reconcile()");
	add_queue(&out, QUEUE_AGELESS,
			  catalog_open_index(intent_open, AccessShareLock));
	add_queue(&out, QUEUE_LAPSED,
			  catalog_open_index(intent_open, AccessShareLock));
	return hand_out(&out, fcinfo);
}
