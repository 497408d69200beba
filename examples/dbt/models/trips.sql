{{ config(materialized="view") }}
select * from parquet.`{{ var("trips") }}`
