select 'alter role {{ username }} nologin' from pg_roles where rolname = '{{ username }}' \gexec
select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '{{ username }}';
drop role if exists {{ username }};
