drop database if exists {{ database }} with (force);
drop role if exists {{ database }};
