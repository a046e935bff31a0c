select event, endpoint, tenant, delivery, finalize_by from receipt indexed by receipt_awaited
where finalize_by is not null and finalize_by <= ? order by finalize_by, event, endpoint limit ?
