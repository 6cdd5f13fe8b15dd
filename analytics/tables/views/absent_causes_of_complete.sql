-- Rows: branch with an absent parent
-- None, where the order found none: parents need not be looked through.
SELECT branch_id, 0 AS causes_missing
FROM linearization
WHERE false
