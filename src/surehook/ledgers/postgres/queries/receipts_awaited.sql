select event, endpoint, tenant, delivery, finalize_by from receipt
where finalize_by is not null and finalize_by <= $1 order by finalize_by, event, endpoint limit $2
