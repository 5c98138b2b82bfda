-- The role without a login owns all that is made, so that a binding's role can be removed at any time.
select 'create role {{ database }} nologin' where not exists (select from pg_roles where rolname = '{{ database }}') \gexec
select 'create database {{ database }} owner {{ database }}' where not exists (select from pg_database where datname = '{{ database }}') \gexec
revoke all on database {{ database }} from public;
alter database {{ database }} connection limit {{ connections }};
