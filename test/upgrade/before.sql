/*
 * 0.9 to 1.0, what tables and data need; the rest is drafted.
 */
ALTER TABLE idem_record ADD COLUMN once_more boolean;
ALTER TABLE idem_record ADD COLUMN unknown_at timestamptz;
