--ONLY_IF postgres
SELECT 1;
