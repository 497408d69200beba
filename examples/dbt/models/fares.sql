select passenger_count, count(*) as trips, max(fare_amount) as highest
from {{ ref("trips") }}
where fare_amount > 0
group by passenger_count
