select 'create role {{ username }}' where not exists (select from pg_roles where rolname = '{{ username }}') \gexec
grant {{ database }} to {{ username }};
alter role {{ username }} login password '{{ verifier }}';
alter role {{ username }} set role to {{ database }};
