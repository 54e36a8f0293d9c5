/*
 * 0.9 to 1.0, what tables and data need; the rest is drafted.
 */
ALTER TABLE idem_record ADD COLUMN once_more boolean;
ALTER TABLE idem_record ADD COLUMN unknown_at timestamptz;
ALTER TABLE idem_record ADD COLUMN guard text COLLATE "C";
ALTER TABLE idem_record ADD COLUMN swept boolean;
ALTER TYPE idem_ticket ADD ATTRIBUTE duplicate_of text;
ALTER TABLE idem_policy ADD COLUMN notify text;
ALTER TABLE idem_intent ADD COLUMN doubt_since timestamptz;
ALTER TABLE idem_intent ADD COLUMN past_token bigint;
