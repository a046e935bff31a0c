-- Bits are only ever added: one too many costs a look, one too few would hide a row.
insert into block_bits (source, first, field, value, bits)
select column1, column2, column3, column4, column5 from (select * from (values {rows:5}) limit ?) v where true
on conflict (source, first, field, value) do update set bits = bits | excluded.bits
where bits | excluded.bits != bits
